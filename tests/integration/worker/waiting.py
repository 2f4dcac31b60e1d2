"""Items as a worker has them in hand, for the tests of waits: decoded, claimed, ended; without a worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from farandole import ids
from farandole.agent import Agent
from farandole.kafka import Record
from farandole.outcome import Emitted, Outcome, Suspended
from farandole.postgres import Connection
from farandole.settings import Settings
from farandole.wake import Wake
from farandole.worker.holdings import Held, Item
from farandole.worker.tracker import Tracker

CLAIM = (
    'INSERT INTO step (event_id, agent, run, name, topic, partition, "offset", owner) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)'
    " ON CONFLICT (event_id, agent, name, run) DO UPDATE SET owner = excluded.owner"
)


def held(topic: str, partition: int) -> Held:
    return Held(topic, partition, Tracker(0, ()), (0, []))


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
    ) -> Item:
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
        return Item(record, held(record.topic, partition), offset, fields=fields, outcome=outcome)

    def claim(self, item: Item, owner: str) -> Item:
        """Claim it as the worker does, or take its claim over."""
        fields = item.fields or {}
        name, topic = item.wake.step if item.wake else "", self.settings.bare(item.held.topic)
        given = (
            fields["event_id"],
            self.agent.name,
            fields["run"],
            name,
            topic,
            item.held.partition,
            item.offset,
            owner,
        )
        self.connection.execute(CLAIM, given)
        return item

    def woken(self, item: Item, at: tuple[int, int], outcome: Outcome | None = None, *, seq: int = 1) -> Item:
        """The same record as it comes back: from the wake topic, where it lies at partition and offset `at`."""
        run = (item.fields or {})["run"]
        wake = Wake(item.origin(self.settings.bare), seq, run, 1, "first")
        lies = held(self.settings.topic("echo.wake"), at[0])
        return Item(item.record, lies, at[1], wake, fields=item.fields, outcome=outcome or Emitted())

    def rows(self, columns: str = 'seq, kind, "offset", attempts, woken_at IS NOT NULL') -> list[tuple[Any, ...]]:
        """All waits, by where their records lay."""
        return self.connection.execute(f'SELECT {columns} FROM wait ORDER BY partition, "offset", run').fetchall()

    def suspended(self) -> list[int]:
        """Offsets whose claims are put off."""
        rows = self.connection.execute('SELECT "offset" FROM step WHERE suspended ORDER BY "offset"')
        return [row[0] for row in rows]
