"""The worker's session in Postgres: its slot (an advisory lock) and its claims. Every call blocks."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

from farandole import postgres
from farandole.errors import Stopped, Unreachable
from farandole.outage import Outage
from farandole.outcome import Skipped
from farandole.session import Session
from farandole.settings import Settings
from farandole.worker.holdings import Item

log = logging.getLogger("farandole.ledger")

T = TypeVar("T")

#: More workers of one agent than partitions of its topic have nothing to do; this is far above both.
MAX_SLOTS = 256

_SQL = Path(__file__).parent / "sql"
_CLAIM = (_SQL / "claim.sql").read_text(encoding="utf-8")
_HOLDER = (_SQL / "slot_holder.sql").read_text(encoding="utf-8")
_RECLAIM = (_SQL / "reclaim.sql").read_text(encoding="utf-8")


class SlotLost(Exception):
    """Another worker has this one's slot, and with it the transactional id and the group instance: this one must begin
    anew, under another name. Nothing it has in hand may be committed."""


class Ledger:
    """Holds the slot as long as its connection lives: a killed worker's slot is free at once.

    `owner` names this life of the worker in the claims it makes.
    """

    def __init__(self, settings: Settings, agent: str, outage: Callable[[], Outage]) -> None:
        self._settings = settings
        self._agent = agent
        self.slot = -1
        self.owner = secrets.token_hex(6)
        self._application = f"farandole {agent} {self.owner}"
        self._session = Session(settings, self._application, outage, self._opened)

    def open(self) -> int:
        """Take the lowest free slot; it names the transactional id and the group instance, so that a restart ends what
        its predecessor left open."""
        self._session.open()
        return self.slot

    def close(self) -> None:
        self._session.close()

    def claim(self, items: list[Item]) -> None:
        """Claim the handlings of `items`; an event that was claimed from another record is marked a duplicate.

        The same coordinates again are a redelivery: this worker takes the claim over and goes on, unless the handling is
        suspended. Losing claims would be harmless: the ids of outputs are derived, so a doubled handling emits the same
        facts.
        """
        if items:
            self.run(lambda connection: self._claim(connection, items))

    def _claim(self, connection: postgres.Connection[Any], items: list[Item]) -> None:
        rows = [(*self._handling(item), *self._coordinates(item)) for item in items]
        given = self._columns(rows)
        durable = any(
            item.wake for item in items
        )  # only its claim tells a wake that was sent twice: it must outlive a crash
        with connection.transaction() if durable else nullcontext():
            if durable:
                connection.execute("SET LOCAL synchronous_commit = on")
            mine = {(row[0], row[1], row[2]) for row in connection.execute(_CLAIM, [self._agent, self.owner, *given])}
        rest = [(item, row) for item, row in zip(items, rows, strict=True) if row[3:] not in mine]
        if not rest:
            return
        given = self._columns([row for _, row in rest])
        found = connection.execute(_RECLAIM, [self.owner, *given, self._agent])
        redelivered = {(row[0], row[1], row[2]): row[3] for row in found}
        for item, row in rest:
            if row[3:] not in redelivered:
                item.outcome = Skipped("duplicate")
            elif redelivered[row[3:]]:
                item.outcome = Skipped("suspended")

    def _handling(self, item: Item) -> tuple[str, int, str]:
        """What is claimed: the event, the run, and which suspension of it a wake answers."""
        _, fields = item.event()
        return fields["event_id"], fields["run"], item.wake.step if item.wake else ""

    def _coordinates(self, item: Item) -> tuple[str, int, int]:
        return self._settings.bare(item.held.topic), item.held.partition, item.offset

    @staticmethod
    def _columns(rows: list[tuple[str, int, str, str, int, int]]) -> list[list[Any]]:
        return [list(column) for column in zip(*rows, strict=True)]

    def confirm(self) -> None:
        """Return when the slot is still this worker's; waits out outages. Raises SlotLost when it is not."""
        self.run(lambda connection: connection.execute("SELECT 1"))

    def run(self, work: Callable[[postgres.Connection[Any]], T]) -> T:
        """`work` on the connection, again and again while the database is away; it is made anew, the slot taken again."""
        return self._session.run(work)

    def _opened(self, connection: postgres.Connection[Any]) -> None:
        connection.execute("SET synchronous_commit = off")  # a claim lost in a crash of the database costs nothing
        if self.slot < 0:
            self.slot = self._take(connection)
        elif not self._lock(connection, self.slot):
            self._look_at_holder(connection)

    def _take(self, connection: postgres.Connection[Any]) -> int:
        for slot in range(MAX_SLOTS):
            if self._lock(connection, slot):
                return slot
        raise Stopped(f"agent {self._agent}: all {MAX_SLOTS} slots are taken")

    def _number(self, slot: int) -> int:
        return postgres.lock_number("slot", self._settings.group(self._agent), str(slot))

    def _lock(self, connection: postgres.Connection[Any], slot: int) -> bool:
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", (self._number(slot),)).fetchone()
        return bool(row and row[0])

    def _look_at_holder(self, connection: postgres.Connection[Any]) -> None:
        """Whoever holds the slot: our own former session, which the server has not missed yet, is ended."""
        holder = connection.execute(_HOLDER, (self._number(self.slot),)).fetchone()
        if holder and holder[1] != self._application:
            raise SlotLost(f"slot {self.slot} of agent {self._agent} is held by {holder[1]!r} (process {holder[0]})")
        if holder:
            connection.execute("SELECT pg_terminate_backend(%s)", (holder[0],))
        raise Unreachable(f"slot {self.slot} of agent {self._agent} was still held by this worker's former session")
