"""What a worker holds: its partitions, their records from arrival to commit, and what may be committed now.

Shared by three threads, under one lock: the Kafka thread brings records and takes partitions away, the event loop takes
records and finishes them, the settling thread plans commits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farandole.contracts.codec import Contract
from farandole.envelope import Coordinates
from farandole.event import Event
from farandole.kafka import Record
from farandole.outcome import Outcome
from farandole.wake import Wake
from farandole.worker import positions
from farandole.worker.plans import Place, Plan
from farandole.worker.positions import Note, Ranges
from farandole.worker.tracker import Tracker

if TYPE_CHECKING:
    from farandole.worker.outputs import Output

#: Records of one partition that were taken and are not yet committed, at most: what a long outage of the broker, or one
#: hanging key, can pile up.
MOST_IN_HAND = 10_000

#: Bytes of them, of all partitions together, as they lay in the log; decoded they take some times as much.
MOST_BYTES = 64 * 1024 * 1024

#: Bytes of outputs in one plan, about: they have to be written within seconds.
_PLAN_BYTES = 8 * 1024 * 1024

#: Seconds.
_LOOK = 0.02


@dataclass(slots=True, eq=False)
class Held:
    """A partition from one assignment until it is taken away. Records keep the one they came with: work done under an
    earlier assignment must never be committed under a later one, which the group's generation does not prevent."""

    topic: str
    partition: int
    tracker: Tracker
    committed: tuple[int, Ranges]  #: the position known to be committed (-1: none yet), and what is finished beyond it
    end: int = -1  #: past everything that has arrived, markers included
    waiting: deque[Item] = field(default_factory=deque)  #: arrived, not taken
    waiting_bytes: int = 0
    taken_bytes: int = 0  #: of records that were taken and are not committed
    running: int = 0  #: handlings under way
    uncommitted: int = 0  #: finished, and not known to be committed
    changed: bool = False  #: the position may have moved since the last commit
    paused: bool = False
    leaving: bool = False  #: to be given up in a moment: what runs may end, nothing new begins
    lost: bool = False  #: nothing of it may be committed any more


@dataclass(slots=True, eq=False)
class Item:
    """One record on its way through the worker; `outcome` is None until it is handled.

    `record` is the record as it lay in the log at first. Of a wake, `held` and `offset` say where it came back.
    """

    record: Record
    held: Held
    offset: int
    wake: Wake | None = None
    contract: Contract | None = None
    fields: dict[str, Any] | None = None  #: envelope and payload as decoded; None for bytes that are no event
    payload: Event | None = None
    outcome: Outcome | None = None
    outputs: Sequence[Output] = ()  #: the records that the outcome puts on the log

    @property
    def size(self) -> int:
        """Bytes of the record, about."""
        return len(self.record.value or b"") + 200

    def event(self) -> tuple[Event, dict[str, Any]]:
        """Payload and fields of an item that was decoded. Raises RuntimeError for one that was not."""
        if self.payload is None or self.fields is None:
            raise RuntimeError(f"{self.record.topic} [{self.record.partition}] {self.record.offset} was not decoded")
        return self.payload, self.fields

    def origin(self, bare: Callable[[str], str]) -> Coordinates:
        """Where the record lay at first; `bare` takes the namespace off a topic."""
        record = self.record
        return Coordinates(bare(record.topic), record.partition, record.offset, record.timestamp_ms)


class Holdings:
    """The partitions held, by (topic, partition), and everything of theirs that is not committed.

    Args:
        owner: the transactional id, told beside each position.
        life: names this process's life among all; part of the tokens.
        most: records in one plan; more are left for the next one, which follows at once.
    """

    def __init__(self, owner: str, life: str, most: int) -> None:
        self.lock = threading.Condition(threading.RLock())
        self.held: dict[tuple[str, int], Held] = {}
        self.metadata: Any = None  #: of the group, once joined; never newer than what `held` says
        self._owner = owner
        self._life = life
        self._most = most
        self._plans = 0
        self._finished: deque[Item] = deque()

    def hold(self, topic: str, partition: int, position: int, beyond: Ranges = ()) -> None:
        """A partition is assigned; `position` is -1 where nothing was committed yet, and it is read from its beginning."""
        with self.lock:
            tracker = Tracker(max(position, 0), beyond)
            self.held[topic, partition] = Held(topic, partition, tracker, (position, list(beyond)), max(position, -1))

    def drop(self, keys: Iterable[tuple[str, int]]) -> None:
        """Partitions are gone: what was done for them since the last commit is void."""
        with self.lock:
            for key in keys:
                held = self.held.pop(key, None)
                if held:
                    held.lost = held.leaving = True
                    held.waiting.clear()
                    held.waiting_bytes = 0

    def leave(self, keys: Iterable[tuple[str, int]], seconds: float) -> None:
        """Partitions are about to go: take nothing more of them; wait, bounded, for what runs to end and be committed."""
        with self.lock:
            leaving = [self.held[key] for key in keys if key in self.held]
            for held in leaving:
                held.leaving = True
                held.waiting.clear()
                held.waiting_bytes = 0
            deadline = time.monotonic() + seconds
            while any(held.running or held.uncommitted for held in leaving) and time.monotonic() < deadline:
                self.lock.wait(_LOOK)  # a handling that ends without an outcome tells nobody

    def arrive(self, item: Item) -> None:
        """A record has come. The lock is held by the caller, for all records of one poll."""
        held = item.held
        held.end = item.offset + 1
        held.waiting.append(item)
        held.waiting_bytes += item.size

    def take(self, most: int) -> list[Item]:
        """The next records, of all partitions in equal shares, in the order of each. What was finished under an earlier
        assignment is passed over; what might not fit beside the position any more stays where it is."""
        with self.lock:
            found: list[Item] = []
            sources = [held for held in self.held.values() if held.waiting and not held.leaving]
            for held in sources:
                share = max(1, most // len(sources))
                while share and held.waiting and self._has_room(held):
                    item = held.waiting.popleft()
                    held.waiting_bytes -= item.size
                    if held.tracker.take(item.offset):
                        held.taken_bytes += item.size
                        found.append(item)
                        share -= 1
            for held in self.held.values():
                if not held.leaving:  # what waited of one that leaves was let go, not handled: it must not be passed
                    self._pass(held)
            return found

    def _pass(self, held: Held) -> None:
        """Past transaction markers, where nothing waits: only so can a lag of 0 be committed."""
        if not held.waiting and held.end > held.tracker.end:
            held.tracker.pass_to(held.end)
        if held.end >= 0 and not held.tracker.unfinished and held.tracker.position > held.committed[0]:
            held.changed = True

    def _has_room(self, held: Held) -> bool:
        """Whether the next record of a partition may be taken. Each has a share of its own: one that stands still, or is
        full of one hot key, must not stop the others."""
        in_hand = held.tracker.unfinished + held.uncommitted
        few = in_hand < MOST_IN_HAND and held.taken_bytes < MOST_BYTES // len(self.held)
        return (few or not in_hand) and held.tracker.fits(held.waiting[0].offset)

    def finish(self, items: Iterable[Item]) -> None:
        """The outcome of these items is known; they may be committed."""
        with self.lock:
            for item in items:
                item.held.uncommitted += 1
                item.held.changed = True
                self._finished.append(item)

    @property
    def to_commit(self) -> bool:
        """Whether a commit would change anything."""
        return bool(self._finished) or any(held.changed for held in list(self.held.values()))

    def plan(self, kept: list[Item]) -> Plan | None:
        """What may be committed now, of partitions that are held: `kept` of an earlier try, or what was finished since (not
        both: what was too much must not grow). None when there is nothing, or the group has not been joined yet.

        Items, positions and group metadata are those of one moment. The metadata may be older, never newer than what is
        known to be held: the group refuses an old generation, and what was lost is left out here.
        """
        with self.lock:
            if self.metadata is None:
                return None
            kept = [item for item in kept if not item.held.lost]
            fresh = [] if kept else self._fresh()
            for item in fresh:
                item.held.tracker.finish(item.offset)
            items = [item for item in (*kept, *fresh) if not item.held.lost]
            self._plans += 1
            note = Note(self._owner, f"{self._life}.{self._plans}")
            places = [self._place(held, note) for held in self.held.values() if held.changed]
            return Plan(note.token, items, places, self.metadata) if places else None

    def _fresh(self) -> list[Item]:
        found: list[Item] = []
        size = 0
        while self._finished and len(found) < self._most and size < _PLAN_BYTES:
            found.append(self._finished.popleft())
            size += sum(output.size for output in found[-1].outputs)
        return found

    def _place(self, held: Held, note: Note) -> Place:
        position, beyond = held.tracker.position, held.tracker.beyond()
        return Place(held, position, beyond, positions.encode(Note(note.owner, note.token, beyond), position))

    def commit(self, plan: Plan) -> None:
        """The plan was made durable."""
        with self.lock:
            for item in plan.items:
                item.held.uncommitted -= 1
                item.held.taken_bytes -= item.size
            for place in plan.places:
                held = place.held
                held.committed = place.position, place.beyond
                held.changed = bool(held.uncommitted)
            self.lock.notify_all()
