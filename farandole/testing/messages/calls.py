"""What the fake server has been asked, and what it says these calls have cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

#: Dollars for a million tokens: input, output, read from the cache, written to it.
Price = tuple[float, float, float, float]


@dataclass(slots=True)
class Call:
    """One request. Times are seconds on the server's monotonic clock."""

    body: dict[str, Any]
    headers: dict[str, str]  #: names in lower case
    came: float
    behaviour: str = ""  #: the name of its class
    status: int = 0  #: 0: the connection was closed before one was sent
    usage: dict[str, int] = field(default_factory=dict)  #: what is charged; empty: nothing
    ended: float | None = None
    whole: bool = False  #: the reply was sent to its end

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

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
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    each = (usage.get(name, 0) * Decimal(str(rate)) for name, rate in zip(names, price, strict=True))
    return math.ceil(sum(each, Decimal(0)))


def most_in_window(calls: Sequence[Call], seconds: float) -> int:
    """The most calls that came within any span of so many seconds."""
    times = sorted(call.came for call in calls)
    most = begin = 0
    for end, at in enumerate(times):
        while times[begin] <= at - seconds:
            begin += 1
        most = max(most, end - begin + 1)
    return most


def most_in_flight(calls: Sequence[Call], now: float) -> int:
    """The most calls that were under way at once."""
    changes = [(call.came, 1) for call in calls] + [(call.ended or now, -1) for call in calls]
    most = running = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most
