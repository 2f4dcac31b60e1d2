"""What the handlers of the flow under fire wrote down, read back: when each handling began, when it ended, and how."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Handling:
    """One attempt of a handler; times are nanoseconds of one clock. `ended` is None where the process died in it."""

    name: str
    agent: str
    event_id: str
    attempt: int
    began: int
    ended: int | None = None
    how: str | None = None


def read(folder: Path) -> dict[str, Handling]:
    """All handlings by their names. Raises ValueError for a line that is none: lines are written whole."""
    found: dict[str, Handling] = {}
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            told = json.loads(line)
            name = told["handling"]
            if told["what"] == "start":
                found[name] = Handling(name, told["agent"], told["event_id"], told["attempt"], told["at"])
            else:
                found[name] = replace(found[name], ended=told["at"], how=told["how"])
    return found


def in_order(handlings: list[Handling]) -> Iterator[tuple[Handling, Handling]]:
    """Pairs of neighbours of which the later one began before the earlier one had ended."""
    for before, after in pairwise(handlings):
        if before.ended is None or after.began < before.ended:
            yield before, after
