"""Items as a worker has them in hand, for the tests of waits: decoded, claimed, ended; without a worker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from farandole import ids
from farandole.agent import Agent
from farandole.envelope import Coordinates
from farandole.kafka import Record
from farandole.outcome import Emitted, Outcome, Suspended
from farandole.postgres import Connection
from farandole.settings import Settings
from farandole.wake import Wake

CLAIM = (
    'INSERT INTO step (event_id, agent, run, name, topic, partition, "offset", owner) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)'
    " ON CONFLICT (event_id, agent, name, run) DO UPDATE SET owner = excluded.owner"
)


@dataclass
class Put:
    """An item that is to be put off."""

    record: Record
    fields: dict[str, Any] | None
    outcome: Outcome | None
    origin: Coordinates
    wake: Wake | None = None


@dataclass
class Desk:
    """One agent's items; every record lies in partition 0 of `jobs.heard` unless it is said otherwise."""

    settings: Settings
    connection: Connection[Any]
    agent: Agent = field(default_factory=lambda: Agent("echo"))

    def item(
        self,
        key: str | None,
        offset: int,
        after: float = 60.0,
        *,
        partition: int = 0,
        kind: str = "retry",
        **given: Any,
    ) -> Put:
        record = Record(
            self.settings.topic("jobs.heard"),
            partition,
            offset,
            1_700_000_000_000,
            None if key is None else key.encode(),
            given.get("value", b"value of %d" % offset),
            given.get("headers", [("origin", b"\xff"), ("none", None)]),
        )
        trace_id = ids.trace_id_of_key("jobs", key or "none")
        event_id = ids.event_id(trace_id, [trace_id], "client", 0, "jobs.Heard", partition * 1_000_000 + offset)
        fields = {"event_id": event_id, "trace_id": trace_id, "run": given.get("run", 0)}
        outcome = Suspended(after, given.get("error", "ValueError: no"), given.get("attempts", 1), kind)
        origin = Coordinates("jobs.heard", partition, offset, 1_700_000_000_000)
        return Put(record, fields, outcome, origin)

    def claim(self, item: Put, owner: str) -> Put:
        """Claim it as the worker does, or take its claim over."""
        fields = item.fields or {}
        at, name = item.record, item.wake.step if item.wake else ""
        topic = self.settings.bare(at.topic)
        given = (fields["event_id"], self.agent.name, fields["run"], name, topic, at.partition, at.offset, owner)
        self.connection.execute(CLAIM, given)
        return item

    def woken(self, item: Put, at: tuple[int, int], outcome: Outcome | None = None, *, seq: int = 1) -> Put:
        """The same record as it comes back: from the wake topic, where it lies at partition and offset `at`."""
        record = replace(item.record, topic=self.settings.topic("echo.wake"), partition=at[0], offset=at[1])
        run = (item.fields or {})["run"]
        return Put(record, item.fields, outcome or Emitted(), item.origin, Wake(item.origin, seq, run, 1, "first"))

    def rows(self, columns: str = 'seq, kind, "offset", attempts, woken_at IS NOT NULL') -> list[tuple[Any, ...]]:
        """All waits, by where their records lay."""
        return self.connection.execute(f'SELECT {columns} FROM wait ORDER BY partition, "offset", run').fetchall()

    def suspended(self) -> list[int]:
        """Offsets whose claims are put off."""
        rows = self.connection.execute('SELECT "offset" FROM step WHERE suspended ORDER BY "offset"')
        return [row[0] for row in rows]
