"""Waits for jobs: looks when the projector tells that they moved, and seldom without being told."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from farandole import postgres, reading
from farandole.errors import Unreachable
from farandole.reading import Goal, Job
from farandole.settings import Settings

log = logging.getLogger("farandole.lookout")

#: Names of channels that the jobs of a namespace are spread over, as in projector/sql/notify.sql.
BUCKETS = 64

#: Seconds. A notification may be lost: a pooler between, a failover, a notification queue that is full.
UNTOLD = 5.0

#: Of the time that looks take: so many times as long nobody looks afterwards, however much is told.
REST = 4.0

#: Goals of one statement.
_MOST = 1_000

#: Seconds, on average, before a connection that broke is made anew.
_PAUSE = 0.5

#: Seconds that the last statement has to end by itself.
_FAREWELL = 1.0


def bucket(trace_id: UUID) -> int:
    """Which channel tells of a job."""
    return trace_id.int % BUCKETS


def channel(settings: Settings, number: int) -> str:
    """Its name; 44 bytes at most, as a namespace has 31: Postgres takes 63."""
    return f"{settings.schema_name}.{number}"


@dataclass(eq=False, slots=True)
class _Wait:
    """Somebody waits for a goal."""

    goal: Goal
    bucket: int
    answer: asyncio.Future[Job | None]
    looked: bool = False  #: since its channel is listened to


@dataclass(slots=True)
class _Line:
    """The connection, and what is heard on it."""

    connection: postgres.AsyncConnection[Any]
    listening: set[int] = field(default_factory=set)
    told: set[int] = field(default_factory=set)
    looked_at: float = field(default_factory=time.monotonic)  #: when all waits were looked at


class Lookout:
    """Shared by any number of tasks of one event loop: one connection, opened by the first wait, and one query for all that
    were told. While nobody waits it listens to nothing.

    Args:
        application: its name in pg_stat_activity.
    """

    def __init__(self, settings: Settings, application: str) -> None:
        self._settings = settings
        self._application = application
        self._waits: set[_Wait] = set()
        self._nudge = asyncio.Event()  #: somebody waits for something new, or the connection has something to say
        self._line: _Line | None = None
        self._failure: Exception | None = None  #: of the last attempt, while the database is away
        self._known = False  #: the database has answered once
        self._watching: asyncio.Task[None] | None = None
        self._rest_until = 0.0

    async def until(self, goal: Goal, seconds: float) -> Job | None:
        """The job, as soon as the goal is reached. Outages are waited out.

        Raises TimeoutError when it is not reached within `seconds`, Unreachable when the database is away then, or was
        never there.
        """
        wait = _Wait(goal, bucket(goal.trace_id), asyncio.get_running_loop().create_future())
        self._waits.add(wait)
        self._nudge.set()
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        try:
            async with asyncio.timeout(seconds):
                return await wait.answer
        except TimeoutError:
            if self._failure:
                raise _unreachable(self._failure) from self._failure
            raise
        finally:
            self._waits.discard(wait)
            self._nudge.set()  # the last one puts out the light

    async def close(self) -> None:
        """Let go of the database; whoever still waits is cancelled."""
        for wait in self._waits:
            wait.answer.cancel()
        self._waits.clear()
        self._nudge.set()
        if self._watching:
            # What it has asked is let be answered: cut off in the middle of a statement, the driver would complain aloud.
            _, late = await asyncio.wait([self._watching], timeout=_FAREWELL)
            if late:
                if self._line:
                    postgres.cut_off(self._line.connection)  # a server that stands still answers no cancellation either
                self._watching.cancel()
                await asyncio.wait([self._watching])
        await self._hang_up()

    async def _watch(self) -> None:
        """As long as anybody waits. What is no outage is raised where each is waited."""
        while self._waits:
            try:
                line = await self._connected()
                await self._listen(line)
                await self._look(line)
                await self._quiet(line)
                if not self._waits:
                    await self._deafen(line)
            except Exception as failure:  # noqa: BLE001  raised where each is waited, or waited out
                await self._hang_up()
                if not postgres.is_outage(failure) or not self._known:
                    self._raise(_unreachable(failure) if postgres.is_outage(failure) else failure)
                    return
                again, self._failure = self._failure is not None, failure
                if again:  # the first failure may be that of a connection that nobody has used for long
                    log.warning("outage of the database; jobs are waited for all the same: %s", failure)
                    await asyncio.sleep(_PAUSE * random.uniform(0.5, 1.5))

    def _raise(self, failure: Exception) -> None:
        for wait in self._waits:
            if not wait.answer.done():
                wait.answer.set_exception(failure)

    async def _connected(self) -> _Line:
        if self._line is None or self._line.connection.closed:
            connection = await postgres.connect_async(self._settings, application=self._application)
            self._line = _Line(connection)
            for wait in self._waits:
                wait.looked = False
        return self._line

    async def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line:
            await line.connection.close()

    async def _listen(self, line: _Line) -> None:
        """Before the first look at a job, so that nothing falls between the two."""
        wanted = {wait.bucket for wait in self._waits} - line.listening
        if wanted:
            await self._command(line, "LISTEN", [channel(self._settings, number) for number in sorted(wanted)])
            line.listening |= wanted

    async def _deafen(self, line: _Line) -> None:
        """Nobody would read what comes, and Postgres would have to keep it."""
        line.listening.clear()
        await self._command(line, "UNLISTEN", ["*"])

    async def _command(self, line: _Line, word: str, names: Sequence[str]) -> None:
        quoted = [postgres.sql.SQL("*") if name == "*" else postgres.sql.Identifier(name) for name in names]
        statements = [postgres.sql.SQL(word + " {}").format(name) for name in quoted]
        with postgres.bounded_async(line.connection, postgres.ANSWER):
            await line.connection.execute(postgres.sql.SQL("; ").join(statements), prepare=False)

    async def _look(self, line: _Line) -> None:
        """At the jobs that may have moved: told of, never looked at, or all of them when it is time."""
        now = time.monotonic()
        everything = now - line.looked_at >= UNTOLD
        waits = [wait for wait in self._waits if not wait.answer.done()]
        due = [wait for wait in waits if everything or not wait.looked or wait.bucket in line.told]
        line.told.clear()
        if everything:
            line.looked_at = now
        for start in range(0, len(due), _MOST):
            chunk = due[start : start + _MOST]
            with postgres.bounded_async(line.connection, postgres.ANSWER):
                found = await reading.reached_async(line.connection, [wait.goal for wait in chunk])
            for wait, (reached, job) in zip(chunk, found, strict=True):
                wait.looked = True
                if reached and not wait.answer.done():
                    wait.answer.set_result(job)
        self._failure, self._known = None, True
        self._rest_until = time.monotonic() + REST * (time.monotonic() - now)

    async def _quiet(self, line: _Line) -> None:
        """Until something is told, somebody new waits, or it is time to look without being told."""
        loop, socket = asyncio.get_running_loop(), line.connection.fileno()
        if (rest := self._rest_until - time.monotonic()) > 0:
            await asyncio.sleep(rest)
        await self._hear(line)  # what came with the answer to a statement does not make the socket readable again
        if line.told:
            return
        loop.add_reader(socket, self._nudge.set)
        try:
            async with asyncio.timeout(max(0.0, line.looked_at + UNTOLD - time.monotonic())):
                await self._nudge.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(socket)
        self._nudge.clear()
        await self._hear(line)

    async def _hear(self, line: _Line) -> None:
        async for notice in line.connection.notifies(timeout=0):
            line.told.add(int(notice.channel.rpartition(".")[2]))


def _unreachable(failure: Exception) -> Unreachable:
    return failure if isinstance(failure, Unreachable) else Unreachable(f"Postgres does not answer: {failure}")
