"""The order of work: records of one key one after the other, different keys at the same time, partitions in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lane(Generic[T]):
    """The records of one key that wait, in the order of the log; the first may be in work."""

    __slots__ = ("items", "key", "source")

    def __init__(self, source: Hashable, key: bytes | None) -> None:
        self.source = source
        self.key = key
        self.items: deque[T] = deque()


class Lanes(Generic[T]):
    """What waits to be handled, by source (a partition) and key. Not for threads.

    >>> lanes = Lanes[str]()
    >>> for source, key, item in (("p0", b"a", "a1"), ("p0", b"a", "a2"), ("p0", b"b", "b1"), ("p1", b"c", "c1")):
    ...     lanes.add(source, key, item)
    >>> started = [lanes.start() for _ in range(3)]
    >>> [lane.items[0] for lane in started]
    ['a1', 'c1', 'b1']
    >>> lanes.start()
    >>> lanes.done(started[0])
    >>> lanes.start().items[0]
    'a2'
    """

    def __init__(self) -> None:
        self._lanes: dict[tuple[Hashable, bytes], Lane[T]] = {}
        self._ready: dict[Hashable, deque[Lane[T]]] = {}  # by source, those whose turn has come first
        self.ready = 0  #: lanes that could start now
        self.queued = 0  #: records that wait, those in work not counted

    def add(self, source: Hashable, key: bytes | None, item: T) -> None:
        """Queue `item`; one without a key (None or empty) is a lane of its own."""
        self.queued += 1
        lane = self._lanes.get((source, key)) if key else None
        if lane is None:
            lane = Lane(source, key or None)
            if key:
                self._lanes[source, key] = lane
            self._make_ready(lane)
        lane.items.append(item)

    def start(self) -> Lane[T] | None:
        """A lane whose first item is to be worked on now; it stays where it is until `done`. None when all are busy."""
        if not self.ready:
            return None
        source = next(iter(self._ready))
        waiting = self._ready.pop(source)
        lane = waiting.popleft()
        if waiting:  # to the end of the turn
            self._ready[source] = waiting
        self.ready -= 1
        self.queued -= 1
        return lane

    def done(self, lane: Lane[T]) -> None:
        """The first item of a started lane has been worked on, or given up."""
        lane.items.popleft()
        if lane.items:
            self._make_ready(lane)
        elif lane.key is not None and self._lanes.get((lane.source, lane.key)) is lane:
            del self._lanes[lane.source, lane.key]

    def cut(self, lane: Lane[T]) -> list[T]:
        """Take out what waits behind the first item of a started lane, in its order."""
        rest = list(lane.items)[1:]
        for _ in rest:
            lane.items.pop()
        self.queued -= len(rest)
        return rest

    def drop(self, source: Hashable) -> None:
        """Forget what waits of `source`; items in work stay with whoever works on them."""
        waiting = self._ready.pop(source, deque())
        self.ready -= len(waiting)
        self.queued -= sum(len(lane.items) for lane in waiting)
        for lane in waiting:
            lane.items.clear()
        for (owner, key), lane in list(self._lanes.items()):
            if owner != source:
                continue
            del self._lanes[owner, key]
            while len(lane.items) > 1:  # it is in work
                lane.items.pop()
                self.queued -= 1

    def _make_ready(self, lane: Lane[T]) -> None:
        self._ready.setdefault(lane.source, deque()).append(lane)
        self.ready += 1
