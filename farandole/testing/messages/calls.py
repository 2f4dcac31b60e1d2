"""What the fake server has been asked, and what it says these calls have cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

#: Dollars for a million tokens: input, output, read from the cache, written to it.
Price = tuple[float, float, float, float]

#: The four counts of a call's usage, in the order of a price; they do not overlap.
USAGE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(slots=True)
class Call:
    """One request, also one that was refused or that the client gave up. Times are seconds of `time.monotonic`."""

    body: dict[str, Any]
    headers: dict[str, str]  #: names in lower case
    came: float
    behaviour: str = ""  #: the name of its class
    status: int = 0  #: 0: the connection was closed before one was sent
    usage: dict[str, int] = field(default_factory=dict)  #: what is charged; empty: nothing
    ended: float | None = None
    whole: bool = False  #: the reply was sent to its end
    aborted: bool = False  #: the client went away before
    limited: bool = False  #: the fake's own limits refused it
    request_id: str = ""

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def api_key(self) -> str:
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def key(self) -> str:
        """The idempotency key; "" when there was none."""
        return self.headers.get("idempotency-key", "")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def cost(calls: Iterable[Call], prices: Mapping[str, Price]) -> int:
    """Micro-dollars of the calls, by prices of models; each call is rounded up."""
    return sum(_cost(call.usage, prices[call.model]) for call in calls if call.usage)


def _cost(usage: Mapping[str, int], price: Price) -> int:
    each = (usage.get(name, 0) * Decimal(str(rate)) for name, rate in zip(USAGE, price, strict=True))
    return math.ceil(sum(each, Decimal(0)))


def totals(calls: Iterable[Call], by: str) -> dict[str, dict[str, int]]:
    """Calls, how many of them were whole, and their tokens, by an attribute of theirs."""
    found: dict[str, Counter[str]] = {}
    for call in calls:
        counts = found.setdefault(getattr(call, by), Counter())
        counts.update({"calls": 1, "whole": int(call.whole), **{name: call.usage.get(name, 0) for name in USAGE}})
    return {name: dict(counts) for name, counts in found.items()}


def most_in_window(calls: Iterable[Call], seconds: float, of: str = "calls") -> int:
    """The most that came within any span of so many seconds: calls, or tokens of a kind of USAGE."""
    times = sorted((call.came, 1 if of == "calls" else call.usage.get(of, 0)) for call in calls)
    most = begin = within = 0
    for at, amount in times:
        within += amount
        while times[begin][0] <= at - seconds:
            within -= times[begin][1]
            begin += 1
        most = max(most, within)
    return most


def most_in_flight(calls: Sequence[Call], now: float) -> int:
    """The most calls that were under way at once."""
    changes = [(call.came, 1) for call in calls] + [(call.ended or now, -1) for call in calls]
    most = running = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most
