"""Events through a Schema Registry, with other teams' clients at both ends, in real processes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fastavro
import pytest
from confluent_kafka import DeserializingConsumer, SerializingProducer
from confluent_kafka.schema_registry import Schema as Text
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import StringSerializer
from pydantic import SecretStr

from farandole import ids, postgres
from farandole.contracts import codec, publishing
from farandole.contracts.deriving import derive
from farandole.errors import ConfigurationError, ExitCode
from farandole.flow import RUNTIME_EVENTS
from farandole.settings import Settings
from tests.commands import Command, running
from tests.eventually import eventually
from tests.integration.contracts.door import Door
from tests.integration.worker.conftest import AGENTS
from tests.integration.worker.words import Heard, Murmured, Said, submit
from tests.kafka_log import KafkaLog, Logged

EVENTS = (Heard, Said)


@dataclass
class Flow:
    """The worker's test flow (`jobs.heard` to `jobs.said`) in a namespace of its own, with a registry."""

    settings: Settings
    folder: Path
    door: Door

    def __post_init__(self) -> None:
        self.log = KafkaLog(self.settings.brokers, self.settings.namespace)
        url = self.settings.schema_registry_url
        self.url = url.get_secret_value() if url else ""
        self.registry = SchemaRegistryClient({"url": self.url})

    @contextmanager
    def running(self, *arguments: str | Path, **more: str) -> Iterator[Command]:
        """A command with the registry, such as `run` of the agent echo."""
        log = self.folder / f"{arguments[0]}.log"
        with running(self.settings, log, *arguments, more={"SCHEMA_REGISTRY_URL": self.url, **more}) as command:
            yield command

    @contextmanager
    def echo(self, **more: str) -> Iterator[Command]:
        with self.running("run", AGENTS / "echo.py", **more) as worker:
            worker.said("ready agent=")
            yield worker

    def said(self) -> list[dict[str, Any]]:
        """What the agent said, as a consumer with nothing of ours but the registry reads it."""
        return [self.read(record) for record in self.log.read("jobs.said")] if self.log.exists("jobs.said") else []

    def read(self, record: Logged) -> dict[str, Any]:
        found: dict[str, Any] = AvroDeserializer(self.registry)(record.value or b"", None)
        return found

    def heard(self, *words: str) -> None:
        eventually(lambda: {each["word"] for each in self.said()} >= set(words), f"{words} are said")


@pytest.fixture
def flow(farandole_settings: Settings, farandole_registry: str, tmp_path: Path) -> Iterator[Flow]:
    at = urlsplit(farandole_registry)
    with Door(at.hostname or "", at.port or 0) as door:
        url = SecretStr(f"http://127.0.0.1:{door.port}{at.path}")
        yield Flow(farandole_settings.model_copy(update={"schema_registry_url": url}), tmp_path, door)


def framed(number: int, word: str, schema: Any = None) -> bytes:
    """A stranger's value in Confluent's framing, written with fastavro alone."""
    out = BytesIO(struct.pack(">bI", 0, number))
    out.seek(5)
    parsed = fastavro.parse_schema(schema or derive(Heard, "jobs", envelope=False))
    fastavro.schemaless_writer(out, parsed, {"word": word, "plan": ""})
    return out.getvalue()


def test_confluents_own_clients_write_and_read_our_events(flow: Flow) -> None:
    """An ingest topic that other clients write with their default settings, and an event topic that they read."""
    with flow.echo():
        brokers = {"bootstrap.servers": flow.settings.brokers}
        for envelope, word in ((False, "theirs"), (True, "left empty")):  # a schema of their own, and ours as it is
            serializer = AvroSerializer(flow.registry, json.dumps(derive(Heard, "jobs", envelope=envelope)))
            producer = SerializingProducer(
                brokers | {"key.serializer": StringSerializer(), "value.serializer": serializer}
            )
            producer.produce(flow.log.topic("jobs.heard"), key="order-7", value={"word": word, "plan": ""})
            assert producer.flush(30) == 0
        submit(flow.settings, [("ours", "")])
        consumer = DeserializingConsumer(
            brokers
            | {"group.id": flow.log.topic("other team"), "auto.offset.reset": "earliest"}
            | {"value.deserializer": AvroDeserializer(flow.registry)}
        )
        consumer.subscribe([flow.log.topic("jobs.said")])
        found: dict[str, Any] = {}

        def all_of_them() -> bool:
            if message := consumer.poll(0.5):
                value: Any = message.value()
                found[value["word"]] = value
            return len(found) == 3

        eventually(all_of_them, "a consumer with Confluent's deserializer reads what the agent said")
        consumer.close()
    for word in ("theirs", "left empty"):
        assert str(found[word]["trace_id"]) == ids.trace_id_of_key("jobs", "order-7")
    assert len({flow.read(record)["word"] for record in flow.log.read("jobs.heard")}) == 3
    assert (found["ours"]["emitted_by"], found["ours"]["hop"], found["ours"]["place"]) == ("echo", 1, 0)
    subject = f"{flow.log.topic('jobs.said')}-value"
    assert flow.registry.get_compatibility(subject) == "FULL_TRANSITIVE"
    assert flow.registry.get_versions(subject) == [1]
    assert flow.registry.get_versions(f"{flow.log.topic('jobs.heard')}-value") == [1, 2]


def test_a_topic_with_both_formats_is_read_whole_by_agents_and_projector(flow: Flow) -> None:
    """A migration: writers with and without the registry, one after the other and at once, and a reader without."""
    without = flow.settings.model_copy(update={"schema_registry_url": None})
    submit(without, [("before", "")])
    with flow.echo():
        submit(flow.settings, [("since", "")])
        submit(without, [("late", "")])
        flow.heard("before", "since", "late")
    assert {record.value[:1] for record in flow.log.read("jobs.heard") if record.value} == {b"\x00", b"\xc3"}
    assert {record.value[:1] for record in flow.log.read("jobs.said") if record.value} == {b"\x00"}
    none = {"SCHEMA_REGISTRY_URL": ""}  # the projector reads by the header
    with running(without, flow.folder / "projector.log", "projector", more=none):
        eventually(lambda: folded(without) == 6, "all events are in event_log")
    with postgres.connect(without) as connection:
        assert connection.execute(f"SELECT count(*) FROM {without.schema_name}.parked").fetchone() == (0,)


def folded(settings: Settings) -> int:
    with postgres.connect(settings) as connection:
        if connection.execute("SELECT to_regclass(%s)", [f"{settings.schema_name}.event_log"]).fetchone() == (None,):
            return 0
        found = connection.execute(f"SELECT count(*) FROM {settings.schema_name}.event_log").fetchone()
        return int(found[0]) if found else 0


def test_a_registry_that_is_away_holds_records_up_and_harms_none(flow: Flow) -> None:
    """New ids come while nobody answers: agent and projector wait, and go on by themselves."""
    with flow.echo() as worker, flow.running("projector") as projector:
        schema = derive(Heard, "jobs", envelope=False) | {"doc": f"Of {flow.settings.namespace}."}
        number = flow.registry.register_schema(f"{flow.settings.namespace}-other", Text(json.dumps(schema)))
        flow.door.shut()
        flow.log.write("jobs.heard", [(b"k", framed(number, "patient"))])
        for waiting in (worker, projector):
            waiting.said("does not answer", times=3)
        assert flow.said() == []
        flow.door.unlock()
        flow.heard("patient")
        eventually(lambda: folded(flow.settings) == 2, "both events are in event_log")
    assert not flow.log.exists("echo.dead") or flow.log.read("echo.dead") == []


def test_a_registry_that_moved_harms_no_record_that_names_its_schema_itself(flow: Flow) -> None:
    """The registry gives the ids of old records to nobody, or to other schemas."""
    other = {"type": "record", "name": f"{flow.settings.namespace}.Other", "fields": [{"name": "x", "type": "long"}]}
    with flow.echo():
        taken = flow.registry.register_schema(f"{flow.settings.namespace}-other", Text(json.dumps(other)))
        stranger = codec.writer(derive(Heard, "jobs", envelope=False))
        for number, word in ((taken, "elsewhere"), (999_999, "nowhere")):
            header = ("farandole-schema", number.to_bytes(4, "big") + stranger.fingerprint)
            flow.log.write("jobs.heard", [(b"k", framed(number, word))], headers=[header])
            flow.log.write("jobs.heard", [(b"k", framed(number, f"{word}, and no header"))])
        flow.heard("elsewhere", "nowhere")
        eventually(lambda: flow.log.lag("echo", "jobs.heard") == 0, "the agent is through")
        dead = flow.log.read("echo.dead")
    assert sorted(each["word"] for each in flow.said()) == ["elsewhere", "nowhere"]
    assert [record.header("farandole.dead.cause") for record in dead] == ["unknown_schema"]


def test_only_publish_registers_where_the_setting_says_so(flow: Flow) -> None:
    only = {"FARANDOLE_REGISTER_SCHEMAS": "false"}
    with flow.running("run", AGENTS / "echo.py", **only) as worker:
        assert worker.process.wait(30) == ExitCode.CONFIGURATION
        assert "is not registered under subject" in worker.output()
        assert "farandole schemas publish" in worker.output()
    settings = flow.settings.model_copy(update={"register_schemas": False})
    with pytest.raises(ConfigurationError, match="schemas publish"):
        submit(settings, [("early", "")])
    made = publishing.publish(settings, [*EVENTS, *RUNTIME_EVENTS], registering=True)
    submit(settings, [("hello", "")])
    (record,) = flow.log.read("jobs.heard")
    number = int.from_bytes((record.value or b"")[1:5], "big")
    assert (record.value or b"")[:1] == b"\x00"
    told = {one.writer.name: publishing.place(settings, one) for one in made.values()}
    assert told["jobs.Heard"] == f"id {number}, subject {settings.topic('jobs.heard')}-value"
    assert flow.read(record)["word"] == "hello"


def test_several_event_types_of_a_topic_need_subjects_of_their_own(flow: Flow) -> None:
    events = (Heard, Murmured, Said)
    with pytest.raises(ConfigurationError, match=r"Heard and jobs\.Murmured lie on one topic.*FARANDOLE_SUBJECTS"):
        publishing.publish(flow.settings, events)
    topic = flow.log.topic("jobs.heard")
    for subjects, wanted in (("topic-record", f"{topic}-jobs.Murmured"), ("record", "jobs.Murmured")):
        publishing.publish(flow.settings.model_copy(update={"subjects": subjects}), events)
        assert codec.writer(json.loads(flow.registry.get_latest_version(wanted).schema.schema_str or "")).name == (
            "jobs.Murmured"
        )
