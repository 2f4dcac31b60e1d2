"""What the tests of retention share: jobs of any age, folded without Kafka, and what is left of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from farandole import ids
from farandole.event import Event
from farandole.kafka import Record
from farandole.postgres import Connection
from farandole.settings import Settings
from tests.integration.projection_tables import Folder, places
from tests.journeys import Done, Fact, Log, Submitted, new_fact

#: Looked at from here. Partitions are made by the database's clock; months that are over lie far from its own.
NOW = datetime(2031, 6, 20, 12, tzinfo=UTC)


@dataclass(slots=True)
class Jobs:
    """Writes jobs into the event log; remembers the records."""

    settings: Settings
    connection: Connection[Any]
    log: Log
    records: list[Record] = field(default_factory=list)

    def job(self, days: float, *events: type[Event], keyed: bool = False, kafka_days: float | None = None) -> str:
        """One job whose events lie `days` before NOW (default: submitted, done); by Kafka's clock `kafka_days`."""
        at = NOW - timedelta(days=days)
        key = f"job {len(self.records)}"
        trace = ids.trace_id_of_key("jobs", key) if keyed else ids.trace_id_of_key("jobs", key, at)
        made: list[Fact] = []
        for event in events or (Submitted, Done):
            cause = made[-1] if made else None
            made.append(new_fact(event, trace, cause, occurred_at=micros(at)))
        self.write(made, at if kafka_days is None else NOW - timedelta(days=kafka_days))
        return trace

    def write(self, chosen: Sequence[Fact], logged_at: datetime) -> list[Record]:
        records = [
            replace(self.log.append(fact.event, fact.fields), timestamp_ms=micros(logged_at) // 1000) for fact in chosen
        ]
        self.records += records
        self.fold(records)
        return records

    def fold(self, records: Sequence[Record]) -> None:
        Folder(self.settings, "a", places(records, self.settings)).fold(records)

    def left(self) -> dict[str, int]:
        """Of every job that is in `job` or in `event_log`: how many events there are, by both."""
        rows = self.connection.execute(
            "SELECT trace_id::text, job.events, count(event_id) FROM job FULL JOIN event_log USING (trace_id) GROUP BY 1, 2"
        ).fetchall()
        assert all(counted == found for _, counted, found in rows), rows
        return {trace: counted for trace, counted, _ in rows}

    def partitions(self) -> dict[str, int]:
        """Rows by partition."""
        rows = self.connection.execute(
            "SELECT inhrelid::regclass::text, count(event_id) FROM pg_inherits"
            " LEFT JOIN event_log ON event_log.tableoid = inhrelid WHERE inhparent = 'event_log'::regclass GROUP BY 1"
        ).fetchall()
        return dict(rows)


def micros(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000)
