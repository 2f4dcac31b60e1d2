"""What of a key is finished and not committed yet: an event that is put off behind it (order="hold") waits for that.

A wait may be woken anywhere as soon as its row is there. Were it there before the events ahead of it are committed, the event
could be handled, and its outputs be seen, before theirs; after a crash, before they are handled again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from farandole.worker.holdings import Held, Item


class _Key:
    """Of one key in one partition."""

    __slots__ = ("finished", "waiting")

    def __init__(self) -> None:
        self.finished: set[Item] = set()  # not committed
        self.waiting: list[Item] = []  # to be put off after that


class Ahead:
    """Lives on the event loop. `lane` tells what stands for an item's key; None where its events do not wait for each other."""

    def __init__(self, lane: Callable[[Item], bytes | None]) -> None:
        self._lane = lane
        self._keys: dict[Held, dict[bytes, _Key]] = {}

    def finished(self, items: Iterable[Item]) -> None:
        """These are about to be committed."""
        for item in items:
            if (lane := self._lane(item)) is not None:
                self._keys.setdefault(item.held, {}).setdefault(lane, _Key()).finished.add(item)

    def put_off(self, items: Iterable[Item]) -> list[Item]:
        """Of these the ones that may be put off now; `settled` gives back the others when it is their turn."""
        free: list[Item] = []
        for item in items:
            lane = self._lane(item)
            key = self._keys.get(item.held, {}).get(lane) if lane is not None else None
            (key.waiting if key else free).append(item)
        return free

    def settled(self, items: Iterable[Item]) -> list[Item]:
        """These were committed. What may be put off now, in the order of its keys; of partitions that are lost, all."""
        free: list[Item] = []
        for item in items:
            keys, lane = self._keys.get(item.held), self._lane(item)
            if keys is None or lane is None or (key := keys.get(lane)) is None:
                continue
            key.finished.discard(item)
            if not key.finished:
                free += keys.pop(lane).waiting
        for held in [held for held, keys in self._keys.items() if held.lost or not keys]:
            free += [item for key in self._keys.pop(held).values() for item in key.waiting]
        return free
