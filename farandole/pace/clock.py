"""The database's clock, as far as this process can tell it."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds. An older reading is worth less than a new one: clocks drift apart by some milliseconds a minute.
_FRESH = 60.0


class DatabaseClock:
    """Learned from answers: each read the clock at some time between its question and its arrival.

    Args:
        monotonic: seconds from any moment.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ahead = 0.0
        self._within = float("inf")  #: seconds that the answer to the best question took
        self._heard = 0.0

    def heard(self, asked: float, now: float) -> None:
        """A question sent at `asked` (monotonic) has just been answered; the database's clock said `now`."""
        arrived = self._monotonic()
        took = arrived - asked
        ahead = now - (asked + arrived) / 2
        moved = abs(ahead - self._ahead) > (took + self._within) / 2  # no drift: somebody has set the clock
        if took <= self._within or moved or arrived - self._heard > _FRESH:
            self._ahead, self._within, self._heard = ahead, took, arrived

    def now(self) -> float:
        """Seconds since 1970."""
        return self._monotonic() + self._ahead
