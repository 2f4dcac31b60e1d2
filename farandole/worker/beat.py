"""A worker's signs of life: a row of the table `worker`, written now and then, that `farandole status` reads."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from farandole import postgres
from farandole.settings import Settings
from farandole.threads import in_thread
from farandole.worker.vitals import RATES, State, Vitals, rates

log = logging.getLogger("farandole.beat")

#: Seconds between two signs of life.
EVERY = 2.0
#: Seconds. Rates are of about this long a time: shorter ones jump, longer ones tell of yesterday.
WINDOW = 10.0
#: Seconds. What is written at the end is waited for this long: a database that is away must not hold the worker up.
FAREWELL = 2.0

_SQL = Path(__file__).parent / "sql"
_BEAT, _END, _FORGET = (
    (_SQL / f"{name}.sql").read_text(encoding="utf-8") for name in ("beat", "beat_end", "beat_forget")
)


class Beat:
    """Writes `vitals()` every two seconds for the length of an `async with` block.

    Nothing depends on it: it has a connection and threads of its own, no claim waits for it, and where the database is
    away or slow a beat is left out. At a clean end the row is removed; a block that ends with an error leaves it, with
    state "stopped" and the error as its reason. `vitals` is called on the event loop.
    """

    def __init__(self, settings: Settings, agent: str, slot: int, vitals: Callable[[], Vitals]) -> None:
        self._settings = settings
        self._agent = agent
        self._vitals = vitals
        started = datetime.now(UTC)
        self._row = {
            "agent": agent, "slot": slot, "host": socket.gethostname(), "pid": os.getpid(), "started_at": started,
        }  # fmt: skip
        self._connection: postgres.Connection[Any] | None = None
        self._turn = threading.Lock()  # the last words wait for a beat that is being written
        self._before: deque[tuple[float, dict[str, int]]] = deque()
        self._complained = False

    async def __aenter__(self) -> Beat:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, _kind: object, failure: BaseException | None, _trace: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled() and (broken := self._task.exception()):
            log.error("beat_failed agent=%s", self._agent, exc_info=broken)
        words = self._last_words(failure) if isinstance(failure, Exception) else None
        if not (await asyncio.wait([self._aside(partial(self._say_last, words))], timeout=FAREWELL))[0]:
            log.info("beat_left_out agent=%s: the database does not answer", self._agent)

    async def _run(self) -> None:
        await self._aside(partial(self._write, _FORGET))
        while True:
            vitals = self._vitals()
            words = _json(vitals, self._rates(vitals.counts))
            await self._aside(partial(self._write, _BEAT, words))
            await asyncio.sleep(EVERY)

    def _aside(self, call: Callable[[], None]) -> asyncio.Future[None]:
        return in_thread(call, f"beat-{self._agent}")  # a frozen database must not hold up the exit

    def _rates(self, counts: dict[str, int]) -> dict[str, float]:
        """A second, over the last beats; 0 at the first one."""
        now = time.monotonic()
        self._before.append((now, counts))
        while len(self._before) > 2 and now - self._before[1][0] >= WINDOW:
            self._before.popleft()
        then, before = self._before[0]
        return rates(before, counts, now - then)

    def _last_words(self, failure: Exception) -> postgres.Jsonb:
        ended = replace(self._vitals(), state=State.STOPPED, reason=str(failure)[:500])
        idle = replace(ended, in_flight=0, queued=0, uncommitted=0, paused=0, held=0)
        return _json(idle, dict.fromkeys(RATES, 0.0))

    def _say_last(self, words: postgres.Jsonb | None) -> None:
        self._write(_BEAT if words else _END, words)
        with self._turn:
            self._close()

    def _write(self, statement: str, words: postgres.Jsonb | None = None) -> None:
        with self._turn:
            try:
                self._connected().execute(statement, self._row | {"vitals": words})
                self._complained = False
            except postgres.OUTAGES as failure:
                level = logging.DEBUG if self._complained else logging.INFO
                log.log(level, "beat_left_out agent=%s: %s", self._agent, failure)
                self._complained = True
                self._close()

    def _connected(self) -> postgres.Connection[Any]:
        if self._connection is None:
            self._connection = postgres.connect(self._settings, application=f"farandole {self._agent} beat")
            self._connection.execute("SET statement_timeout = '2s'")
            self._connection.execute("SET synchronous_commit = off")  # a beat that is lost is followed by another
        return self._connection

    def _close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None


def _json(vitals: Vitals, rates: dict[str, float]) -> postgres.Jsonb:
    """An error's text comes from anywhere: what jsonb cannot hold (NUL, lone surrogates) is escaped."""
    at = vitals.last_error_at and vitals.last_error_at.isoformat()
    plain = asdict(vitals) | {"rates": rates, "last_error_at": at}
    return postgres.Jsonb({name: _storable(value) for name, value in plain.items()})


def _storable(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return value.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
