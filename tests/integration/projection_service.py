"""What tests of the running projector share: events in Kafka, the projector as a thread or a process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from farandole import envelope, kafka, topics
from farandole.contracts import codec, schema_log
from farandole.project import find_project
from farandole.projector import run_projector
from farandole.settings import Settings
from tests.journeys import EVENTS, Fact

ROOT = Path(__file__).parents[2]


def make_topics(settings: Settings) -> None:
    """The topics of the tests' events, and their schemas."""
    topics.ensure(settings, topics.of_events(settings, EVENTS))
    schema_log.publish(settings, [codec.contract(event, settings.flow) for event in EVENTS])


def send(settings: Settings, facts: Sequence[Fact], transactional_id: str | None = None) -> None:
    """Write events to Kafka, in one transaction if given an id."""
    producer = kafka.producer(settings, transactional_id)
    if transactional_id:
        producer.init_transactions()
        producer.begin_transaction()
    for fact in facts:
        contract = codec.contract(fact.event, settings.flow)
        value = contract.encode(fact.fields, fact.event.model_validate({"text": "hello"}))
        producer.produce(settings.topic(contract.topic), key=envelope.key_of(fact.fields), value=value)
    if transactional_id:
        producer.commit_transaction()
    producer.flush()


def send_raw(settings: Settings, topic: str, value: bytes | None, key: bytes | None = None) -> None:
    producer = kafka.producer(settings)
    producer.produce(settings.topic(topic), key=key, value=value)
    producer.flush()


@contextmanager
def running(settings: Settings) -> Iterator[threading.Thread]:
    """A projector in this process; what it died of is raised at the end."""
    stop, died = threading.Event(), []

    def run() -> None:
        try:
            run_projector(settings, find_project(), stop)
        except BaseException as error:  # noqa: BLE001  raised below, in the test
            died.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join()
    if died:
        raise died[0]


@contextmanager
def process(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """A projector as a process of its own, to be killed; it is gone at the end in any case."""
    given = {
        "KAFKA_BOOTSTRAP_SERVERS": settings.brokers,
        "DATABASE_URL": settings.database,
        "FARANDOLE_NAMESPACE": settings.namespace,
        "FARANDOLE_SESSION_TIMEOUT_MS": "6000",
        "FARANDOLE_BATCH": "50",
    }
    child = subprocess.Popen([sys.executable, "-m", "farandole", "projector"], cwd=ROOT, env=os.environ | given)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
