"""What the fake API of a run answers: every fifth call fails, each time in another way."""

from __future__ import annotations

import os
import random
from typing import Any

from farandole.testing.messages import (
    Answer,
    Behaviour,
    Cut,
    Garbage,
    MidStream,
    Slow,
    overloaded,
    rate_limited,
    refusal,
    server_error,
    truncated,
)

GOOD = {"sound": "hard", "words": "a hard one"}

#: Output tokens of the answers that do, and of no others.
MARK = 17

#: Seconds: longer than an attempt may take.
HANGS = 6.0

_FAILURES: list[Behaviour] = [
    rate_limited(0.2),
    overloaded(),
    server_error(),
    Cut("before"),
    Cut("headers"),
    Cut("body"),
    Garbage(),
    Garbage(200, "{}", "application/json"),
    MidStream("overloaded_error", 3),
    truncated('{"sound": "ha'),
    refusal("no"),
    Answer("no object at all"),
    Slow(HANGS),
]

_chance = random.Random(int(os.environ.get("CHAOS_SEED", "1")))
_bag: list[Behaviour] = []


def weather(body: dict[str, Any]) -> Behaviour:
    """The rule. All failures come round before one comes again."""
    if _chance.random() >= 0.2:
        wanted = "sound" if "cheap" in body["model"] else "words"
        answer = Answer({wanted: GOOD[wanted]}, usage={"output_tokens": MARK})
        return Slow(_chance.uniform(0.02, 0.3), answer)
    if not _bag:
        _bag.extend(_chance.sample(_FAILURES, len(_FAILURES)))
    return _bag.pop()


def fair(body: dict[str, Any]) -> Behaviour:
    """The other rule: no call fails, and each takes its time."""
    wanted = "sound" if "cheap" in body["model"] else "words"
    return Slow(float(os.environ["CHAOS_SLOW"]), Answer({wanted: GOOD[wanted]}, usage={"output_tokens": MARK}))
