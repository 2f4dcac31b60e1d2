"""One commit as it is planned: which records, which positions, under which membership."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farandole.worker.positions import Ranges

if TYPE_CHECKING:
    from farandole.worker.holdings import Held, Item


@dataclass(frozen=True, slots=True)
class Place:
    """A partition in a plan: the position to commit, what is finished beyond it, and both as text."""

    held: Held
    position: int
    beyond: Ranges
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """One commit: items still owned, a position for each partition, and the group metadata of the same moment.

    `token` names it: it is part of every place's text, so that the committed offsets tell whether it was made.
    """

    token: str
    items: list[Item]
    places: list[Place]
    metadata: Any
