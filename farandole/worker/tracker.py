"""Which records of a partition are finished: how far its position may move, and what is finished beyond it.

Offsets that never come (transaction markers, records of aborted transactions, compacted ones) are no holes: only what was
taken can be unfinished.
"""

from __future__ import annotations

from collections import deque

from farandole.worker import positions
from farandole.worker.positions import Ranges

#: Records kept in mind behind the first unfinished one; each commit looks at all of them.
MOST = 30_000


class Tracker:
    """Of one partition from one assignment until it is taken away.

    >>> tracker = Tracker(5)
    >>> [tracker.take(offset) for offset in (5, 6, 7)]
    [True, True, True]
    >>> tracker.finish(6)
    >>> tracker.position, tracker.beyond()
    (5, [(6, 7)])
    >>> tracker.finish(5)
    >>> tracker.position, tracker.beyond()
    (7, [])

    Args:
        position: the first offset that will come.
        beyond: what was finished past it under an earlier assignment.
    """

    def __init__(self, position: int, beyond: Ranges = ()) -> None:
        self.end = position  #: past all that was taken or passed over
        self._taken: deque[int] = deque()  # in order, from the first unfinished one on
        self._finished: set[int] = set()  # of those taken
        self._known = deque(beyond)  # finished before, and not come by yet

    @property
    def position(self) -> int:
        """The first unfinished record; past the last one when there is none. It never passes what has not come."""
        return self._taken[0] if self._taken else self.end

    @property
    def unfinished(self) -> int:
        """How many records were taken and are not finished."""
        return len(self._taken) - len(self._finished)

    def take(self, offset: int) -> bool:
        """A record comes. False when there is nothing to do about it: it was finished before, or has come already."""
        if offset < self.end:
            return False
        self.end = offset + 1
        while self._known and self._known[0][1] <= offset:
            self._known.popleft()
        if not (self._known and self._known[0][0] <= offset):
            self._taken.append(offset)
            return True
        if self._taken:  # else the position simply moves past it
            self._taken.append(offset)
            self._finished.add(offset)
        return False

    def pass_to(self, end: int) -> None:
        """Nothing but markers lies between what has come and `end`."""
        self.end = max(self.end, end)

    def finish(self, offset: int) -> None:
        """A record that was taken is finished; to say so again changes nothing."""
        if not self._taken or offset < self._taken[0]:
            return
        self._finished.add(offset)
        while self._taken and self._taken[0] in self._finished:
            self._finished.remove(self._taken.popleft())

    def beyond(self) -> Ranges:
        """What is finished past the position; a range may span offsets that never came."""
        found: list[tuple[int, int]] = []
        first = last = -1
        for offset in self._taken if self._finished else ():
            if offset in self._finished:
                first, last = (offset if first < 0 else first), offset
            elif first >= 0:
                found.append((first, last + 1))
                first = -1
        if first >= 0:
            found.append((first, last + 1))
        for known_first, known_end in self._known:
            known_first = max(known_first, self.end)
            if known_first >= known_end:
                continue
            if found and found[-1][1] >= known_first:
                known_first = found.pop()[0]
            found.append((known_first, known_end))
        return found

    def fits(self, offset: int) -> bool:
        """Whether the record at `offset` can be taken, such that whatever is finished then in whatever order can be written
        beside the position. Finished runs are never more than the unfinished records that keep them apart, and one."""
        if len(self._taken) >= MOST:
            return False
        far = max(offset + 1, self._known[-1][1] if self._known else 0)
        position = self._taken[0] if self._taken else offset
        return positions.fits(self.unfinished + 2 + len(self._known), far - position)
