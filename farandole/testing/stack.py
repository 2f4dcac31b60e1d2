"""pytest fixtures: a Kafka and a Postgres for a test run, and a fresh namespace on them for every test.

Which services: KAFKA_BOOTSTRAP_SERVERS and DATABASE_URL when both are set; containers when FARANDOLE_TESTCONTAINERS=1;
else a private local stack with ports and data of its own, stopped at the end even when pytest is killed; the workers of
pytest-xdist share one. A Schema Registry (SCHEMA_REGISTRY_URL, or one more container, or beside the others on the private
stack) starts with the first test that asks for one. Services that cannot be had fail the tests, they never skip them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from farandole.errors import FarandoleError

if TYPE_CHECKING:
    from farandole.settings import Settings
    from farandole.stack.stack import Stack
    from farandole.stack.status import Endpoints

#: Where the addresses of services of one's own are given, by the field of Endpoints they fill.
GIVEN = {"kafka_bootstrap_servers": "KAFKA_BOOTSTRAP_SERVERS", "database_url": "DATABASE_URL"}
REGISTRY = "SCHEMA_REGISTRY_URL"


@pytest.fixture(scope="session")
def farandole_private_stack() -> Iterator[Stack]:
    """A local stack of this test run alone (with pytest-xdist: of this worker), started when first asked for."""
    with ExitStack() as stack:
        try:
            from farandole.stack.stack import Stack

            folder = Path(tempfile.mkdtemp(prefix="farandole-test-"))
            folder.chmod(_mode())
            stack.callback(shutil.rmtree, folder, ignore_errors=True)  # also when it does not start
            private = Stack(folder, brief=True)
            stack.enter_context(private.running(wipe=True))
        except FarandoleError as error:
            pytest.fail(f"no local stack for the tests: {error}", pytrace=False)
        yield private


@pytest.fixture(scope="session")
def farandole_stack(request: pytest.FixtureRequest) -> Iterator[Endpoints]:
    """The addresses of a Kafka and a Postgres, for the whole test run; a registry is `farandole_registry`."""
    from farandole.stack.status import Endpoints

    given = _given()
    if len(given) == len(GIVEN):
        yield Endpoints(**given)
    elif given:
        pytest.fail(f"set both {' and '.join(GIVEN.values())} or neither: tests need one of each", pytrace=False)
    elif _wants_containers():
        from farandole.testing.containers import containers

        with ExitStack() as stack:
            try:
                endpoints = stack.enter_context(containers())
            except FarandoleError as error:
                pytest.fail(str(error), pytrace=False)
            yield endpoints
    elif worker := getattr(request.config, "workerinput", None):
        found = _stack_of_all_workers(worker["testrunuid"])
        yield replace(found, schema_registry_url=None)  # whether another worker has asked for one changes no test
    else:
        private: Stack = request.getfixturevalue("farandole_private_stack")
        yield private.endpoints


@pytest.fixture(scope="session")
def farandole_registry(request: pytest.FixtureRequest, farandole_stack: Endpoints) -> Iterator[str]:
    """The address of a Schema Registry beside that Kafka and Postgres, started when first asked for.

    A test that asks for it has it in its `farandole_settings` too. It is one for the whole run: subjects of a test are
    its own where they hold its namespace, as those of its topics do.
    """
    if given := os.environ.get(REGISTRY):
        yield given
    elif _given():
        pytest.fail(f"set {REGISTRY} beside {' and '.join(GIVEN.values())}: this test needs one", pytrace=False)
    elif _wants_containers():
        from farandole.testing.containers import registry_container

        with ExitStack() as stack:
            try:
                address = stack.enter_context(registry_container())
            except FarandoleError as error:
                pytest.fail(str(error), pytrace=False)
            yield address
    elif worker := getattr(request.config, "workerinput", None):
        yield str(_stack_of_all_workers(worker["testrunuid"], registry=True).schema_registry_url)
    else:
        private: Stack = request.getfixturevalue("farandole_private_stack")
        try:
            found = private.add_registry()
        except FarandoleError as error:
            pytest.fail(f"no Schema Registry for the tests: {error}", pytrace=False)
        yield str(found.schema_registry_url)


def _given() -> dict[str, str]:
    return {field: os.environ[variable] for field, variable in GIVEN.items() if os.environ.get(variable)}


def _wants_containers() -> bool:
    return os.environ.get("FARANDOLE_TESTCONTAINERS", "").lower() in ("1", "true", "yes", "on")


def _stack_of_all_workers(run: str, registry: bool | None = None) -> Endpoints:
    """The stack that the workers of a pytest-xdist run share: the first to ask starts it, or its registry.

    It is owned by pytest itself, our parent: workers come and go, and the watchdog stops the stack after the last test.
    """
    folder = Path(tempfile.gettempdir()) / f"farandole-test-{run}"
    folder.mkdir(exist_ok=True)
    folder.chmod(_mode())
    try:
        from farandole.stack.stack import Stack

        return Stack(folder, brief=True).up(registry=registry, owner_pid=os.getppid(), wipe_with_owner=True)
    except FarandoleError as error:
        if not registry:  # else Kafka and Postgres run there, for other tests
            shutil.rmtree(folder, ignore_errors=True)
        pytest.fail(f"no local stack for the tests: {error}", pytrace=False)


def _mode() -> int:
    """Of a stack's folder. As root Postgres runs as `nobody`, who must get to its data."""
    return 0o711 if os.geteuid() == 0 else 0o700


@pytest.fixture
def farandole_namespace() -> str:
    """A word no other test has: topics, groups and tables under it are this test's own."""
    return f"t{secrets.token_hex(3)}"


@pytest.fixture
def farandole_settings(
    request: pytest.FixtureRequest,
    farandole_stack: Endpoints,
    farandole_namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Settings:
    """Settings for this test: the run's services, the test's namespace, all else as the project says.

    A Schema Registry is among them where the test asks for `farandole_registry` as well, or SCHEMA_REGISTRY_URL is set.
    """
    from farandole.settings import load_settings

    monkeypatch.delenv("FARANDOLE_NAMESPACE", raising=False)  # the environment would win over the fresh one
    asks = "farandole_registry" in request.fixturenames
    registry = request.getfixturevalue("farandole_registry") if asks else None
    services = asdict(replace(farandole_stack, schema_registry_url=registry))
    return load_settings(**services, namespace=farandole_namespace)


@pytest.fixture
def farandole_outages(farandole_private_stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """The private stack, to stop, start and kill: `outages.kafka.kill()`. What the test left down is started after it.

    Its addresses are `outages.endpoints`; services given by the environment are put out of sight during the test.
    """
    for variable in (*GIVEN.values(), REGISTRY):
        monkeypatch.delenv(variable, raising=False)
    yield farandole_private_stack
    for service in farandole_private_stack.services:
        service.start()
