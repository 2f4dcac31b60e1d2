"""One projector without Kafka: what it holds, what it folds next, and how it goes on after an outage, as the loop does."""

from __future__ import annotations

from collections.abc import Sequence

from farandole.kafka import Record
from farandole.projector.rows import Rows
from farandole.projector.store import Place, Store
from tests.integration.proof.world import World
from tests.wire import Wire


class Member:
    """One projector: what Kafka has assigned to it, what the database has granted, and where it believes to be."""

    def __init__(self, rows: Rows, wire: Wire, owner: str) -> None:
        self._rows = rows
        self._owner, self._lives = owner, 1
        self.wire = wire
        self.assigned: set[Place] = set()
        self.epochs: dict[Place, int] = {}
        self.positions: dict[Place, int] = {}
        self.refused: set[Place] = set()  #: of the last batch
        self.interrupted = False  #: the last batch
        self.waiting: tuple[list[Record], dict[Place, int], dict[Place, int]] | None = None
        self._store = self._open()

    @property
    def name(self) -> str:
        return f"{self._owner}.{self._lives}"

    def begin(self, world: World, places: Sequence[Place]) -> None:
        """A plan of its own: nothing is remembered but the connection."""
        self._world, self.waiting = world, None
        for kept in (self.assigned, self.epochs, self.positions):
            kept.clear()
        self.claim(places)

    def close(self) -> None:
        self._store.close()

    def claim(self, places: Sequence[Place]) -> None:
        self.assigned |= set(places)
        for place, claim in self._store.claim(places).items():
            assert claim.gap is None
            self.epochs[place] = claim.epoch
            self.positions[place] = -1 if claim.next_offset is None else claim.next_offset

    def release(self) -> None:
        mine, self.epochs = self.epochs, {}
        self.assigned.clear()
        self._store.release(mine)

    def prepare(self, most: int) -> None:
        """The next records of every partition, with the right to write them as it is now."""
        self.waiting = self.waiting or (*self._next(most), dict(self.epochs))

    def fold(self, most: int, again: int) -> None:
        """What was prepared before, else what is next; and once more the last records of those that were folded."""
        self.prepare(most)
        assert self.waiting
        (records, reached, epochs), self.waiting = self.waiting, None
        self.refused, self.interrupted = set(), True
        if reached:
            before = [item.record for place in reached for item in self._world.lies[place]]
            before = [record for record in before if record.offset < self.positions[self._place(record)]]
            before = before[-again:] if again else []
            folded = self._store.fold(self._rows.batch([*before, *records]), reached, epochs)
            for place in folded.refused:
                self.epochs.pop(place, None)
                self.assigned.discard(place)
            self.positions |= {place: end for place, end in reached.items() if place not in folded.refused}
            self.refused = set(folded.refused)
        self.interrupted = False

    def _next(self, most: int) -> tuple[list[Record], dict[Place, int]]:
        """An end of the log counts when it was reached, as a batch's does in the loop."""
        records, reached = [], {}
        for place in self.epochs:
            start = self.positions[place]
            ahead = [item.record for item in self._world.lies[place] if item.record.offset >= start]
            taken = ahead[:most]
            end = self._world.ends[place] if len(taken) == len(ahead) else taken[-1].offset + 1
            if end > start:
                reached[place] = end
            records += taken
        return records, reached

    def _place(self, record: Record) -> Place:
        return self._world.settings.bare(record.topic), record.partition

    def recover(self, killed: bool) -> None:
        """As after an outage: a new connection, and from where the database says. After a kill under another name."""
        self._store.close()
        self._lives += killed
        self.waiting = None
        self.epochs.clear()
        self.positions.clear()
        self._store = self._open()
        self.claim(sorted(self.assigned))

    def _open(self) -> Store:
        return Store(self.wire.settings, self.name)
