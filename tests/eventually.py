"""Waiting in tests: look at a condition until it holds, up to a deadline; never sleep for a guess."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], what: str = "the condition", seconds: float = 30.0) -> T:
    """The first truthy value of `look()`. Fails with `what`, and what was seen last, when none comes in time."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}; last seen: {seen!r}"
        time.sleep(0.05)
    return seen
