"""Keys whose later events must wait (order="hold"), from the moment an earlier one is put off until the database knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class Holds:
    """Lives on the event loop. `Waits.behind` sees rows that are committed; this covers events claimed before that.

    A key is held while an event of it is being put off, and then until every claim that began before the row was committed
    has handed its events to the lanes. Holding a key for too long is harmless: an event that is put off behind nobody is due
    at once.
    """

    def __init__(self) -> None:
        self._open: Counter[bytes] = Counter()  # being put off: not committed yet
        self._fading: dict[bytes, int] = {}  # committed; held until so many claims were handed over
        self._begun = 0
        self._handed_over = 0

    def __contains__(self, lane: bytes | None) -> bool:
        return lane is not None and (lane in self._open or lane in self._fading)

    def claiming(self) -> None:
        """A claim begins. Claims end in the order in which they began."""
        self._begun += 1

    def handed_over(self) -> None:
        """The events of the earliest claim still under way are with the lanes, or ended."""
        self._handed_over += 1
        self._fading = {lane: claim for lane, claim in self._fading.items() if claim > self._handed_over}

    def hold(self, lane: bytes | None) -> None:
        """An event of the key is to be put off."""
        if lane is not None:
            self._open[lane] += 1

    def put_off(self, lanes: Iterable[bytes | None]) -> None:
        """Events that `hold` was called for are put off, durably; or given up, with their partition."""
        for lane in lanes:
            if lane is None:
                continue
            self._open[lane] -= 1
            if self._open[lane] <= 0:
                del self._open[lane]
                if self._begun > self._handed_over:
                    self._fading[lane] = self._begun
