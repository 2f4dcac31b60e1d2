"""The sweeper: brings back what is due to the agent's wake topic, and looks after wakes that nothing came of."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from farandole import asking, kafka, postgres
from farandole.agent import Agent
from farandole.envelope import Coordinates
from farandole.errors import Unreachable
from farandole.kafka import KafkaException
from farandole.outage import Outage
from farandole.settings import Settings
from farandole.threads import in_thread
from farandole.worker.membership import read_note
from farandole.worker.waits import Numbered, Waits, unpack_headers
from farandole.worker.waking import Due, Waking

log = logging.getLogger("farandole.sweeper")

#: Seconds. Bounds how late a wait is noticed that another worker wrote; of one of our own `nudge` tells.
_LOOK = 1.0

#: Seconds. What is due is in another sweeper's hands; when that one is frozen, its locks end after a while.
_TAKEN = 0.1

#: Waits woken in one transaction, and bytes of their values: memory, and how long their rows are locked.
_ROWS, _BYTES = 1000, 8 * 1024 * 1024

#: Seconds. A sweep that has not noticed a stop by then hangs, and is left behind with its thread.
_LEAVE = 2.0

_SQL = postgres.texts(__file__)


class Sweeper:
    """One a worker; those of an agent's workers share its waits by locks. Survives outages of both services."""

    def __init__(self, settings: Settings, agent: Agent, waits: Waits, outage: Callable[[], Outage]) -> None:
        self._settings = settings
        self._agent = agent
        self._waits = waits
        self._outage = outage
        self._leaving = threading.Event()
        self._nudged = asyncio.Event()
        self._waking = Waking(settings, agent.wake_topic, self._leaving.is_set)
        self._connection: postgres.Connection[Any] | None = None
        self.woken = 0  #: wakes sent so far

    def nudge(self) -> None:
        """Something was put off or released here: look at once when it is due, not within a second. On the event loop."""
        self._nudged.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Sweep until `stop` is set. Raises Stopped when an outage lasts too long, and whatever is no outage."""
        stopping = asyncio.ensure_future(stop.wait())
        stopping.add_done_callback(lambda _: self._leaving.set())
        sweep: asyncio.Future[float] | None = None
        outage = self._outage()
        try:
            while not stop.is_set():
                self._nudged.clear()
                sweep = in_thread(self._sweep, f"sweep-{self._agent.name}")
                both: set[asyncio.Future[Any]] = {sweep, stopping}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if not sweep.done():
                    break
                try:
                    pause, outage = sweep.result(), self._outage()
                except (KafkaException, *postgres.OUTAGES) as failure:
                    if not (kafka.is_outage(failure) or postgres.is_outage(failure)):
                        raise
                    pause = outage.endure(failure)
                    self._nudged.clear()  # what is away does not come back sooner for it
                await self._rest(stopping, pause)
        finally:
            stopping.cancel()
            self._leaving.set()
            if sweep is not None and not sweep.done():
                await asyncio.wait([sweep], timeout=_LEAVE)
            if sweep is None or sweep.done():
                self._close()

    async def _rest(self, stopping: asyncio.Future[Any], seconds: float) -> None:
        nudged = asyncio.ensure_future(self._nudged.wait())
        await asyncio.wait([stopping, nudged], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        nudged.cancel()

    def _close(self) -> None:
        self._waking.close()
        if self._connection is not None:
            self._connection.close()

    def _sweep(self) -> float:
        """Wake what is due and look after what was left; seconds until there is more to do. Blocking, bounded."""
        connection = self._alive()
        due, look = self._next(connection)
        if due > 0 and look > 0:
            return min(due, look, _LOOK)
        taken = self._wake_due(connection) if due <= 0 else 0
        if look <= 0:
            connection.execute(_SQL["orphans"], {"agent": self._agent.name, "rows": _ROWS})
            self._look_after(connection)
        return 0.0 if taken or look <= 0 else _TAKEN

    def _next(self, connection: postgres.Connection[Any]) -> tuple[float, float]:
        """Seconds until something is due, and until something is to be looked at."""
        row = connection.execute(_SQL["next_due"], {"agent": self._agent.name}).fetchone()
        return tuple(_LOOK if found is None else found for found in row or (None, None))  # type: ignore[return-value]

    def _wake_due(self, connection: postgres.Connection[Any]) -> int:
        """Send wakes, and note them; how many were taken in hand. One transaction: its locks keep other sweepers off these
        rows, and end with it whatever becomes of us.

        A crash after the wakes are sent and before the commit sends them once more, under the same number: the claim tells.
        """
        with connection.transaction():
            given = {"agent": self._agent.name, "rows": _ROWS, "bytes": _BYTES}
            rows = [_due(row) for row in connection.execute(_SQL["due"], given)]
            if not rows:
                return 0
            sent = self._waking.send(rows)
            if sent.delivered:
                places = [(one.event_id, one.run, one.seq, partition, at) for one, partition, at in sent.delivered]
                connection.execute(_SQL["woken"], [*_columns(places), self._agent.name])
            if sent.refused:
                self._put_off(connection, sent.refused)
        self.woken += len(sent.delivered)
        log.debug("woken agent=%s waits=%d", self._agent.name, len(sent.delivered))
        if sent.failure and not self._leaving.is_set():
            raise Unreachable(f"{self._agent.wake_topic}: wakes were not delivered: {sent.failure.str()}")
        return len(rows)

    def _put_off(self, connection: postgres.Connection[Any], refused: Iterable[tuple[Due, kafka.KafkaError]]) -> None:
        for one, error in refused:
            log.error("wake_refused agent=%s event=%s: %s", self._agent.name, one.event_id, error.str())
        numbers = [(one.event_id, one.run, one.seq) for one, _ in refused]
        connection.execute(_SQL["put_off"], [*_columns(numbers), self._agent.name])

    def _look_after(self, connection: postgres.Connection[Any]) -> None:
        """Waits whose wake was sent a while ago: over, when a worker ended between its commit and the settling."""
        found = [Left(*row) for row in connection.execute(_SQL["left"], [self._agent.name, _ROWS])]
        if not found:
            return
        topic = self._settings.topic(self._agent.wake_topic)
        places = sorted({(topic, left.at[0]) for left in found})
        group = self._settings.group(self._agent.name)
        there = asking.bounds(self._settings, places)
        reached = asking.committed(self._settings, group, list(there), stable=False) if there else {}
        fates: dict[str, list[Numbered]] = {"handled": [], "gone": [], "ahead": []}
        for left in found:
            place = (topic, left.at[0])
            done = place in reached and _finished(reached[place], left.at[1])
            fate = left.fate(done, there.get(place), self._settings.claims)
            fates[fate].append((str(left.event_id), left.run, left.seq))
        self._waits.end(connection, fates["handled"])
        for fate, query in (("gone", "wake_again"), ("ahead", "look_later")):
            if fates[fate]:
                connection.execute(_SQL[query], [*_columns(fates[fate]), self._agent.name])
        if fates["gone"]:
            log.warning("wakes_gone agent=%s waits=%d: they are woken again", self._agent.name, len(fates["gone"]))

    def _alive(self) -> postgres.Connection[Any]:
        if self._connection is None or self._connection.broken or self._connection.closed:
            connection = postgres.connect(self._settings, application=f"farandole {self._agent.name} sweeper")
            connection.execute(_SQL["sweeper_session"])
            self._connection = connection
        return self._connection


@dataclass(frozen=True, slots=True)
class Left:
    """A wait whose wake was sent a while ago, where that lies, and which record its claim is about, if it was claimed."""

    event_id: UUID
    run: int
    seq: int
    wake_partition: int
    wake_offset: int
    claim_partition: int | None
    claim_offset: int | None

    @property
    def at(self) -> tuple[int, int]:
        """Partition and offset of the wake that counts: of several under one number, the one that was claimed."""
        if self.claim_partition is None or self.claim_offset is None:
            return self.wake_partition, self.wake_offset
        return self.claim_partition, self.claim_offset

    def fate(self, done: bool, there: tuple[int, int] | None, claims: bool) -> str:
        """What became of the wake: whether the group has committed it as `done`, and which offsets are in the log.

        "handled": the claimed record is done, and what came of it committed. "ahead": it still lies before its reader, or in
        his hands. "gone": expired, or its topic made anew; or done without a claim, which a database that crashed has lost.
        """
        _, offset = self.at
        if done:
            return "handled" if self.claim_offset is not None or not claims else "gone"
        return "ahead" if there is not None and there[0] <= offset < there[1] else "gone"


def _finished(place: kafka.TopicPartition, offset: int) -> bool:
    """Whether a group's committed position says that the record at `offset` is done with: before it, or noted beyond it."""
    note = read_note(place)
    return offset < place.offset or any(first <= offset < end for first, end in (note.beyond if note else ()))


def _due(row: tuple[Any, ...]) -> Due:
    event_id, run, seq, topic, partition, offset, timestamp_ms, key, value, headers, attempts, error = row
    origin = Coordinates(topic, partition, offset, timestamp_ms)
    return Due(str(event_id), run, seq, origin, key, value, unpack_headers(headers), attempts, error)


def _columns(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
