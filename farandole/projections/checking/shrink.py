"""From a fault among many events to the fewest that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TypeVar
from uuid import UUID

from farandole.projections.checking.layouts import Layout, small
from farandole.projections.checking.trials import Trials

T = TypeVar("T")

#: Events. More of them are not tried in pairs, nor in all orders: the pairs would be too many.
FEW = 8


def fewest(ids: Sequence[T], wrong: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of `ids` that is wrong as they are, and of which no single one can be left out.

    Delta debugging (Zeller and Hildebrandt, 2002): halves first, then ever smaller pieces are left out.

    >>> fewest(range(50), lambda kept: {7, 31} <= set(kept))
    [7, 31]
    """
    kept, pieces = list(ids), 2
    while len(kept) > 1:
        size = -(-len(kept) // pieces)
        parts = [kept[start : start + size] for start in range(0, len(kept), size)]
        alone = next((part for part in parts if len(part) < len(kept) and wrong(part)), None) if pieces == 2 else None
        if alone is not None:
            kept = alone
            continue
        rest = ([one for one in kept if one not in part] for part in parts)
        smaller = next((left for left in rest if left and wrong(left)), None)
        if smaller is not None:
            kept, pieces = smaller, max(pieces - 1, 2)
        elif size == 1:
            break
        else:
            pieces = min(2 * pieces, len(kept))
    return kept


def disagreement(
    trials: Trials, one: Layout, other: Layout, jobs: Mapping[UUID, UUID]
) -> tuple[list[UUID], Layout, Layout]:
    """The fewest events found for which two ways still differ, and the plainest two such ways."""
    ids = sorted(
        {id_ for batch in one.batches for id_ in batch}, key=lambda id_: (jobs[id_], id_)
    )  # jobs stay together
    kept = fewest(ids, lambda part: trials.differ(one.of(set(part)), other.of(set(part))))
    for size in range(2, min(len(kept), 3) + 1):
        for some in combinations(kept, size) if len(kept) <= FEW else ():
            if found := _plainest(trials, some, jobs):
                return sorted(some), *found
    return sorted(kept), one.of(set(kept)), other.of(set(kept))


def _plainest(trials: Trials, ids: Sequence[UUID], jobs: Mapping[UUID, UUID]) -> tuple[Layout, Layout] | None:
    return next((pair for pair in small(ids, jobs) if trials.differ(*pair)), None)
