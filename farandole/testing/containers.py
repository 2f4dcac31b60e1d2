"""Kafka, Postgres and a registry as Docker containers, for test runs that say FARANDOLE_TESTCONTAINERS=1."""

from __future__ import annotations

import http.client
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from farandole.errors import ExitCode, FarandoleError
from farandole.stack.status import Endpoints

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer
    from testcontainers.postgres import PostgresContainer

KAFKA_IMAGE = "apache/kafka:4.2.2"
POSTGRES_IMAGE = "postgres:18"
REGISTRY_IMAGE = "apicurio/apicurio-registry:3.3.3"
#: Seconds for a container to serve once its image is there.
PATIENCE = 120

#: As in farandole/stack/kafka.properties; see there for why.
KAFKA_SETTINGS = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS": "1000",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "4",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS": "4",
}


@contextmanager
def containers() -> Iterator[Endpoints]:
    """One broker and one database; NO_DOCKER when no engine answers."""
    container, postgres = _require_docker()
    port = _free_port()
    kafka = container(KAFKA_IMAGE).with_bind_ports(9092, port)
    host = kafka.get_container_host_ip()
    for key, value in {**KAFKA_SETTINGS, "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{host}:{port}"}.items():
        kafka.with_env(key, value)
    database = postgres(POSTGRES_IMAGE, username="farandole", password="farandole", dbname="farandole")
    with kafka, database.with_command("postgres -c max_connections=200"):
        _await_kafka(f"{host}:{port}")
        yield Endpoints(f"{host}:{port}", database.get_connection_url(driver=None))


@contextmanager
def registry_container() -> Iterator[str]:
    """The address of a Schema Registry that keeps its schemas in memory; NO_DOCKER when no engine answers."""
    container, _ = _require_docker()
    with container(REGISTRY_IMAGE).with_exposed_ports(8080) as registry:
        address = f"http://{registry.get_container_host_ip()}:{registry.get_exposed_port(8080)}/apis/ccompat/v7"
        _await_registry(address)
        yield address


def _require_docker() -> tuple[type[DockerContainer], type[PostgresContainer]]:
    """The classes of testcontainers, once an engine has answered."""
    try:
        import docker  # type: ignore[import-untyped]  # it has no types
        from testcontainers.core.container import DockerContainer
        from testcontainers.postgres import PostgresContainer
    except ImportError as error:
        raise FarandoleError(
            f"FARANDOLE_TESTCONTAINERS=1 needs {error.name}: pip install 'farandole[test]'", ExitCode.CONFIGURATION
        ) from None
    try:
        docker.from_env().ping()
        return DockerContainer, PostgresContainer
    except docker.errors.DockerException as error:
        raise FarandoleError(
            f"FARANDOLE_TESTCONTAINERS=1 asks for containers, but no Docker engine answers ({error}); start one, or "
            "unset it to test on the local stack",
            ExitCode.NO_DOCKER,
        ) from error


def _await_kafka(servers: str) -> None:
    """Wait until the broker lists itself; its container is up before it is."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if admin.list_topics(timeout=1).brokers:
                return
        except KafkaException as error:
            if time.monotonic() > deadline:
                why = f"{KAFKA_IMAGE} did not answer at {servers} within {PATIENCE} s: {error}"
                raise FarandoleError(why, ExitCode.STACK_FAILED) from error


def _await_registry(address: str) -> None:
    """Wait until the registry lists its subjects."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"{address}/subjects", timeout=1):
                return
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() > deadline:
                why = f"{REGISTRY_IMAGE} did not answer at {address} within {PATIENCE} s: {error}"
                raise FarandoleError(why, ExitCode.STACK_FAILED) from error
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
