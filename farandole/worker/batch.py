"""What a worker has in hand: the partitions it holds, and a batch of records with what became of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from farandole.codec import Contract
from farandole.event import Event
from farandole.kafka import Record
from farandole.outcome import Outcome
from farandole.wake import Wake


@dataclass(slots=True, eq=False)
class Held:
    """A partition from one assignment until it is taken away. Records keep the one they came with: work done under an
    earlier assignment must never be committed under a later one, which the group's generation does not prevent."""

    topic: str
    partition: int
    committed: int  #: the position known to be committed; -1 when none is yet
    end: int = -1  #: past everything delivered or skipped (transaction markers) so far
    lost: bool = False


@dataclass(slots=True, eq=False)
class Item:
    """One record on its way through the worker; `outcome` is None until it is handled."""

    record: Record
    held: Held
    contract: Contract | None = None
    fields: dict[str, Any] | None = None  #: envelope and payload as decoded; None for bytes that are no event
    payload: Event | None = None
    outcome: Outcome | None = None
    wake: Wake | None = None

    def event(self) -> tuple[Event, dict[str, Any]]:
        """Payload and fields of an item that was decoded. Raises RuntimeError for one that was not."""
        if self.payload is None or self.fields is None:
            raise RuntimeError(f"{self.record.topic} [{self.record.partition}] {self.record.offset} was not decoded")
        return self.payload, self.fields


@dataclass(slots=True, eq=False)
class Batch:
    """Records taken together, in the order of their partitions. `ends` is the position past each partition's last one."""

    items: list[Item] = field(default_factory=list)
    ends: dict[Held, int] = field(default_factory=dict)

    def open(self) -> Iterator[Item]:
        """The items that nothing has happened to yet, of partitions that are still held."""
        return (item for item in self.items if item.outcome is None and not item.held.lost)

    def finished(self) -> tuple[list[Item], dict[Held, int]]:
        """What may be committed together: per partition the items before the first unfinished one, and the position after
        them. An item finished behind an unfinished one is left for the next reading of the log: its ids will be the same."""
        stuck: dict[Held, int] = {}
        for item in self.items:
            if item.outcome is None and item.held not in stuck:
                stuck[item.held] = item.record.offset
        if not stuck:
            return self.items, self.ends
        done = [item for item in self.items if item.held not in stuck or item.record.offset < stuck[item.held]]
        first = {held: min(i.record.offset for i in self.items if i.held is held) for held in stuck}
        ends = {held: stuck.get(held, end) for held, end in self.ends.items() if stuck.get(held) != first.get(held, -1)}
        return done, ends


@dataclass(frozen=True, slots=True)
class Plan:
    """One commit: items still owned, the position of each partition, and the group metadata of the same moment."""

    items: list[Item]
    ends: dict[Held, int]
    metadata: Any
