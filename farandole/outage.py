"""An outage being sat out: how long the next wait is, and when to give up. Nothing is dead-lettered for an outage."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from farandole.errors import Stopped

log = logging.getLogger("farandole.outage")

T = TypeVar("T")

#: Seconds between two tries, on average. Short: what is away usually comes back within seconds.
_PAUSE = 0.5


class Outage:
    """Begins with the first failure; made anew for each piece of work, so that an outage's length is counted afresh.

    `limit` is in seconds; `stopping` tells whether the worker has been asked to stop, after which only `grace` seconds are
    left. `clock` counts seconds from any moment. `tell` is given each failure.
    """

    def __init__(
        self,
        who: str,
        limit: float,
        stopping: Callable[[], bool] = lambda: False,
        grace: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[BaseException], object] = lambda _: None,
    ) -> None:
        self._who = who
        self._limit = limit
        self._stopping = stopping
        self._grace = grace
        self._clock = clock
        self._tell = tell
        self._began: float | None = None
        self._asked: float | None = None

    def endure(self, failure: BaseException) -> float:
        """Seconds to wait before the next try, jittered. Raises Stopped, with the failure, when it has lasted too long."""
        now = self._clock()
        self._began = now if self._began is None else self._began
        if self._stopping():
            self._asked = now if self._asked is None else self._asked
        lasted = now - self._began
        reason = f"{type(failure).__name__}: {failure}"[:500]
        if lasted > self._limit:
            raise Stopped(f"{self._who}: an outage has lasted {lasted:.0f} s: {reason}") from failure
        if self._asked is not None and now - self._asked >= self._grace:
            raise Stopped(f"{self._who}: asked to stop during an outage: {reason}") from failure
        self._tell(failure)
        log.warning("outage %s since=%.0fs: %s", self._who, lasted, reason)
        return _PAUSE * random.uniform(0.5, 1.5)

    def through(self, call: Callable[[], T], passes: Callable[[Exception], bool]) -> T:
        """What `call` returns; it is called again while its failure is one that `passes`. Blocking."""
        while True:
            try:
                return call()
            except Exception as failure:
                if not passes(failure):
                    raise
                time.sleep(self.endure(failure))
