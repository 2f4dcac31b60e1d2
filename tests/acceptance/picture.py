"""What lies on the log and in the tables of a namespace, as an outsider reads it: confluent-kafka, fastavro, psycopg."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
import psycopg
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from tests.kafka_log import KafkaLog, Logged
from tests.oracle import JobRow

#: Topic (without the namespace), partition, offset.
Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Stage:
    """One agent of the flow: the topic it reads, and the types of which it emits exactly one for every event there."""

    agent: str
    reads: str
    emits: frozenset[str]


@dataclass(frozen=True, slots=True)
class Seen:
    """A committed record. `fields` are as on the wire, None for bytes that no schema on the log reads."""

    place: Place
    key: bytes | None
    value: bytes | None
    fields: dict[str, Any] | None
    schema: dict[str, Any]

    @property
    def event_id(self) -> str | None:
        """None for bytes that are no event, and for an event whose schema has no envelope."""
        return (self.fields or {}).get("event_id")

    @property
    def type(self) -> str:
        return f"{self.schema['namespace']}.{self.schema['name']}"

    @property
    def agent(self) -> str:
        """Who emitted it, without the version."""
        return str((self.fields or {}).get("emitted_by", "")).partition(" ")[0]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of `<agent>.dead`: the raw record it sets aside, and where that lies."""

    agent: str
    origin: Place
    run: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class LogRow:
    """A row of event_log."""

    event_id: str
    trace_id: str
    place: Place
    value: bytes
    occurred_at: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How far everyone is."""

    ends: dict[tuple[str, int], int]  #: of every partition of every event topic, transaction markers included
    positions: dict[tuple[str, int], int]  #: what the projector has stored
    lags: dict[str, int]  #: by agent


@dataclass(frozen=True, slots=True)
class Picture:
    """A namespace at one moment; true to itself only when nothing moves."""

    records: list[Seen]  #: of every event topic, by topic, partition and offset
    dead: list[DeadLetter]
    event_log: list[LogRow]
    parked: list[Place]
    jobs: dict[str, JobRow]  #: job_state
    standing: Standing


def connect(url: str, schema: str) -> psycopg.Connection[Any]:
    """As any client of the database would, but for the namespace's schema."""
    return psycopg.connect(url, autocommit=True, options=f"-c search_path={schema},public -c timezone=UTC")


def take(log: KafkaLog, database: psycopg.Connection[Any], stages: Iterable[Stage], flow: str = "jobs") -> Picture:
    """Read everything."""
    topics = _topics(log, flow)
    schemas = _Schemas(log)
    with ThreadPoolExecutor(len(topics)) as readers:  # most of a reading is waiting for the end of its topic
        logged = zip(topics, readers.map(log.read, topics), strict=True)
    return Picture(
        records=[schemas.seen(topic, record) for topic, records in logged for record in records],
        dead=[letter for stage in stages for letter in _dead(log, stage.agent)],
        event_log=_event_log(database),
        parked=list(database.execute('SELECT topic, partition, "offset" FROM parked')),
        jobs=_jobs(database),
        standing=standing(log, database, stages, flow),
    )


def standing(log: KafkaLog, database: psycopg.Connection[Any], stages: Iterable[Stage], flow: str = "jobs") -> Standing:
    """How far everyone is now; cheap enough to be asked again and again."""
    stored = database.execute("SELECT topic, partition, next_offset FROM projector_offset")
    return Standing(
        ends=ends(log, _topics(log, flow)),
        positions={(topic, partition): offset or 0 for topic, partition, offset in stored},
        lags={stage.agent: log.lag(stage.agent, stage.reads) for stage in stages},
    )


def ends(log: KafkaLog, topics: Iterable[str]) -> dict[tuple[str, int], int]:
    """The ends of the logs, transaction markers included."""
    known = log.admin.list_topics(timeout=10).topics
    asked = {
        TopicPartition(log.topic(topic), partition): OffsetSpec.latest()  # type: ignore[no-untyped-call]
        for topic in topics
        if log.topic(topic) in known
        for partition in known[log.topic(topic)].partitions
    }
    found = log.admin.list_offsets(asked, request_timeout=10) if asked else {}
    return {
        (place.topic.removeprefix(f"{log.namespace}."), place.partition): answer.result(10).offset
        for place, answer in found.items()
    }


class _Schemas:
    """Reads records by the schemas on the log, ids and times left as strings and longs."""

    def __init__(self, log: KafkaLog) -> None:
        found = {
            (record.key or b"").decode(): json.loads(record.value or b"") for record in log.read("farandole.schemas")
        }
        self._schemas = {bytes.fromhex(name): schema for name, schema in found.items()}
        self._parsed = {name: fastavro.parse_schema(_as_on_the_wire(schema)) for name, schema in self._schemas.items()}

    def seen(self, topic: str, record: Logged) -> Seen:
        value = record.value or b""
        name, data = value[2:10], BytesIO(value[10:])
        place = (topic, record.partition, record.offset)
        try:
            fields: Any = fastavro.schemaless_reader(data, self._parsed[name], None)
        except Exception:  # noqa: BLE001  bytes from anywhere
            return Seen(place, record.key, record.value, None, {})
        whole = value[:2] == b"\xc3\x01" and data.tell() == len(value) - 10
        return Seen(place, record.key, record.value, fields if whole else None, self._schemas[name])


def _as_on_the_wire(schema: Any) -> Any:
    """The schema without its logical types."""
    if isinstance(schema, dict):
        return {key: _as_on_the_wire(value) for key, value in schema.items() if key != "logicalType"}
    return [_as_on_the_wire(item) for item in schema] if isinstance(schema, list) else schema


def _topics(log: KafkaLog, flow: str) -> list[str]:
    """The event topics, without the namespace."""
    names = (name.removeprefix(f"{log.namespace}.") for name in log.admin.list_topics(timeout=10).topics)
    return sorted(name for name in names if name.startswith(f"{flow}."))


def _dead(log: KafkaLog, agent: str) -> list[DeadLetter]:
    name = f"{agent}.dead"
    return [_dead_letter(agent, record) for record in log.read(name)] if log.exists(name) else []


def _dead_letter(agent: str, record: Logged) -> DeadLetter:
    told = {part: record.header(f"farandole.dead.{part}") for part in ("topic", "partition", "offset", "run")}
    origin = (told["topic"], int(told["partition"]), int(told["offset"]))
    return DeadLetter(agent, origin, int(told["run"]), record.key, record.value)


def _event_log(database: psycopg.Connection[Any]) -> list[LogRow]:
    rows = database.execute(
        'SELECT event_id::text, trace_id::text, topic, partition, "offset", value,'
        " (extract(epoch FROM occurred_at) * 1000000)::bigint FROM event_log"
    )
    return [LogRow(event, trace, (topic, partition, offset), value, at)
            for event, trace, topic, partition, offset, value, at in rows]  # fmt: skip


def _jobs(database: psycopg.Connection[Any]) -> dict[str, JobRow]:
    rows = database.execute(
        "SELECT trace_id::text, stage, status, attempts, run, hop, events, dead_letters, created_at, updated_at"
        " FROM job_state"
    )
    return {trace: JobRow(*rest) for trace, *rest in rows}
