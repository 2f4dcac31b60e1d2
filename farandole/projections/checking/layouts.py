"""Ways to fold the same events: in which order, in which batches, by how many projectors, under which plans."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal
from uuid import UUID

Batch = tuple[UUID, ...]

#: How the batches are given to projectors:
#: - one: to one, one after the other
#: - in turn: to two, one after the other
#: - at once: two by two, of different jobs, to two projectors of which neither sees what the other has not committed
#: - refold: to a refold: event_log has all of them before the first is folded
Way = Literal["one", "in turn", "at once", "refold"]

#: The planner is free in what a query does not order, and chooses anew as tables grow.
PLANS: tuple[tuple[str, ...], ...] = (
    (),
    ("enable_hashagg",),
    ("enable_hashjoin", "enable_mergejoin"),
    ("enable_sort", "enable_nestloop"),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Batches of event ids, in the order in which they are folded; an id may come again."""

    batches: tuple[Batch, ...]
    way: Way = "one"
    plan: tuple[str, ...] = ()  #: planner settings that are off

    def of(self, kept: Collection[UUID]) -> Layout:
        """The same with fewer events."""
        batches = [tuple(one for one in batch if one in kept) for batch in self.batches]
        if self.way == "at once":  # both of a pair, or none
            pairs = zip(batches[::2], batches[1::2], strict=True)
            return replace(self, batches=tuple(batch for pair in pairs if any(pair) for batch in pair))
        return replace(self, batches=tuple(batch for batch in batches if batch))


def plain(ids: Sequence[UUID]) -> Layout:
    """What the others are held against: one event after the other, in the order of the ids.

    Not all in one batch: how the rows of a batch lie in new_events is Postgres' choice, anew each time.
    """
    return split(sorted(ids), 1)


def tried(ids: Sequence[UUID], jobs: Mapping[UUID, UUID], seed: int) -> Iterator[Layout]:
    """Every way a check tries; `jobs` says which job an event is of."""
    chance = random.Random(seed)
    ids = sorted(ids)

    def shuffled() -> list[UUID]:
        return chance.sample(ids, len(ids))

    yield split(ids[::-1], 1)
    yield Layout((tuple(ids),))
    yield Layout((tuple(ids[::-1]),))
    for plan in PLANS:
        yield Layout((tuple(shuffled()),), plan=plan)
    for size in (2, 7, 25):
        yield split(shuffled(), size)
    again = shuffled() + chance.choices(ids, k=len(ids) // 2)
    yield split(chance.sample(again, len(again)), 5)
    yield replace(split(shuffled(), 3), way="in turn")
    yield replace(split(ids, 4), way="refold")
    yield replace(split(shuffled(), 3), way="refold")  # what came meanwhile is folded last, whatever its ids
    for size in (len(ids), 2):
        yield at_once(shuffled(), jobs, size, chance)


def split(ids: Sequence[UUID], size: int) -> Layout:
    return Layout(tuple(tuple(ids[start : start + size]) for start in range(0, len(ids), size)))


def at_once(ids: Sequence[UUID], jobs: Mapping[UUID, UUID], size: int, chance: random.Random) -> Layout:
    """The jobs dealt out to two projectors, whose batches of `size` are folded two by two."""
    mine = {job for job in sorted(set(jobs.values())) if chance.random() < 0.5}
    sides = [split([one for one in ids if (jobs[one] in mine) is side], size).batches for side in (True, False)]
    count = max(len(side) for side in sides)
    padded = [[*side, *[()] * (count - len(side))] for side in sides]
    return Layout(tuple(batch for pair in zip(*padded, strict=True) for batch in pair), way="at once")


def small(ids: Sequence[UUID], jobs: Mapping[UUID, UUID]) -> list[tuple[Layout, Layout]]:
    """Pairs of ways for two or three events, the plainest pair first: what is said of a fault comes from the first that
    differs."""
    orders = [list(order) for order in permutations(sorted(ids))]
    singles = [split(order, 1) for order in orders]
    whole = [Layout((tuple(order),)) for order in orders]
    pairs = [(singles[0], other) for other in singles[1:]]
    pairs += [(whole[0], other) for other in whole[1:]]
    pairs += [(one, other) for one in whole for other in singles]
    groups = [[one for one in sorted(ids) if jobs[one] == job] for job in sorted({jobs[one] for one in ids})]
    if len(groups) == 2:
        both = Layout((tuple(groups[0]), tuple(groups[1])), way="at once")
        pairs.append((replace(both, way="one"), both))
    pairs.append((singles[0], replace(singles[0], way="refold")))
    return pairs
