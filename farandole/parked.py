"""Parked records: what the projector could not read as events, listed, counted, given up."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from farandole import reading
from farandole.errors import ConfigurationError
from farandole.kafka import Record
from farandole.postgres import Connection, psycopg
from farandole.settings import Settings


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which parked records: those that fit all that is given; topics are without the namespace."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    cause: str | None = None
    trace_id: UUID | str | None = None
    discarded: bool = False  #: those that were given up, too


@dataclass(frozen=True, slots=True)
class ParkedRecord:
    """One record, raw, and why it is no event."""

    topic: str  #: without the namespace
    partition: int
    offset: int
    timestamp_ms: int  #: Kafka's
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    trace_id: UUID  #: the job, as far as key and place tell
    cause: str
    error: str
    parked_at: datetime
    retried_at: datetime | None
    discarded_at: datetime | None
    reason: str | None  #: why it was discarded

    @property
    def place(self) -> str:
        """`jobs.done/0@17`: topic, partition, offset."""
        return f"{self.topic}/{self.partition}@{self.offset}"

    def record(self, settings: Settings) -> Record:
        """The record as Kafka gave it."""
        topic = settings.topic(self.topic)
        return Record(topic, self.partition, self.offset, self.timestamp_ms, self.key, self.value, self.headers)


@dataclass(frozen=True, slots=True)
class Count:
    """Records of one topic and cause."""

    topic: str
    cause: str
    records: int
    discarded: int  #: of them
    oldest: datetime
    newest: datetime


def rows(
    connection: Connection[Any],
    chosen: Chosen,
    limit: int | None = None,
    after: ParkedRecord | None = None,
    until: datetime | None = None,
) -> list[ParkedRecord]:
    """The records by topic, partition and offset: those behind `after`, and parked `until` then."""
    first = {"topic": "", "partition": 0, "offset": 0, "timestamp_ms": 0}
    behind = {f"after_{name}": getattr(after, name, value) for name, value in first.items()}
    found = _rows(connection, "parked_rows", asdict(chosen) | behind | {"limit": limit, "until": until})
    return [ParkedRecord(**row | {"headers": _headers(row["headers"])}) for row in found]


def pages(connection: Connection[Any], chosen: Chosen, size: int) -> Iterator[list[ParkedRecord]]:
    """All of the records, at most `size` at a time; what is parked meanwhile is not among them."""
    row = connection.execute("SELECT now()").fetchone()
    until, last = (row[0] if row else None), None
    while page := rows(connection, chosen, size, last, until):
        yield page
        last = page[-1]


def counts(connection: Connection[Any], chosen: Chosen) -> list[Count]:
    """How many they are, by topic and cause."""
    return [Count(**row) for row in _rows(connection, "parked_counts", asdict(chosen))]


def of_job(connection: Connection[Any], trace_id: UUID | str) -> list[ParkedRecord]:
    """The first hundred that seem to belong to a job, as its key or its place tells; without those that were discarded."""
    return rows(connection, Chosen(trace_id=trace_id), limit=100)


def discard(connection: Connection[Any], chosen: Chosen, reason: str) -> int:
    """Give the records up, in one transaction: they are trouble no longer, and stay with their bytes. How many there were."""
    given = asdict(chosen) | {"reason": reason}
    return connection.execute(reading.SQL["parked_discard"], given).rowcount


def _headers(told: list[list[str | None]]) -> list[tuple[str, bytes | None]]:
    return [(name or "", None if value is None else base64.b64decode(value)) for name, value in told]


def _rows(connection: Connection[Any], query: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return reading.rows(connection, query, given)
    except psycopg.errors.UndefinedColumn as error:
        raise ConfigurationError(
            "the database is of an older version; `farandole migrate` brings it up to date"
        ) from error
