"""Limits of the fake, kept as the API keeps them: token buckets that refill all the time, one set a model."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from farandole.models.configured import Limit
from farandole.testing.messages.behaviours import Failure

#: What the headers speak of, and how an error calls it.
_NAMES = {"requests": "requests", "input_tokens": "input tokens", "output_tokens": "output tokens"}

#: A minute. What the headers tell of when nothing is enforced: more than any test asks for.
_PLENTY = 100_000_000


class Bucket:
    """Holds what may be used at once; a minute fills it."""

    def __init__(self, a_minute: int, now: float) -> None:
        self.limit, self._left, self._at = a_minute, float(a_minute), now

    def left(self, now: float) -> float:
        """Below 0 when more was used than was there."""
        self._left = min(self.limit, self._left + (now - self._at) * self.limit / 60)
        self._at = now
        return self._left

    def take(self, amount: float, now: float) -> None:
        """Use it up, also beyond what is left."""
        self._left = self.left(now) - amount

    def seconds_until(self, amount: float, now: float) -> float:
        """Until so much is there, or all that can be."""
        return max(0.0, (min(amount, self.limit) - self.left(now)) * 60 / self.limit)


class Limits:
    """The buckets of all models. Without `enforced` nothing is refused.

    A call needs one request, its input tokens (but those read from the cache), and some output tokens; the output it got
    is taken when it ends.
    """

    def __init__(self, enforced: Limit | None) -> None:
        self.enforced = enforced
        self._buckets: dict[str, dict[str, Bucket]] = {}
        self._running: dict[str, int] = {}

    def admit(self, model: str, input_tokens: int, now: float) -> Failure | None:
        """Take what a call needs, or say why it must wait: then nothing is taken."""
        buckets = self._of(model, now)
        if self.enforced:
            if self.enforced.concurrency and self._running.get(model, 0) >= self.enforced.concurrency:
                return _refused("concurrent connections", self.enforced.concurrency, 1, "")
            needs = {"requests": 1, "input_tokens": input_tokens, "output_tokens": 1}
            waits = {name: buckets[name].seconds_until(needs[name], now) for name in needs}
            name = max(waits, key=lambda name: waits[name])
            if waits[name] > 1e-9:
                return _refused(_NAMES[name], buckets[name].limit, waits[name], " per minute")
        buckets["requests"].take(1, now)
        buckets["input_tokens"].take(input_tokens, now)
        self._running[model] = self._running.get(model, 0) + 1
        return None

    def end(self, model: str, output_tokens: int, now: float) -> None:
        """A call that was let in is over."""
        self._running[model] -= 1
        self._of(model, now)["output_tokens"].take(output_tokens, now)

    def headers(self, model: str, now: float) -> dict[str, str]:
        """anthropic-ratelimit-…; when a bucket will be full is told as a time of RFC 3339."""
        found: dict[str, str] = {}
        wall = datetime.fromtimestamp(time.time(), UTC)
        for name, bucket in self._of(model, now).items():
            prefix = f"anthropic-ratelimit-{name.replace('_', '-')}"
            full = wall + timedelta(seconds=math.ceil(bucket.seconds_until(bucket.limit, now)))
            found[f"{prefix}-limit"] = str(bucket.limit)
            found[f"{prefix}-remaining"] = str(max(0, math.floor(bucket.left(now))))
            found[f"{prefix}-reset"] = f"{full:%Y-%m-%dT%H:%M:%SZ}"
        return found

    def _of(self, model: str, now: float) -> Mapping[str, Bucket]:
        if model not in self._buckets:
            self._buckets[model] = {name: Bucket(getattr(self.enforced, name, None) or _PLENTY, now) for name in _NAMES}
        return self._buckets[model]


def _refused(what: str, limit: int, seconds: float, span: str) -> Failure:
    message = f"This request would exceed your organization's rate limit of {limit:,} {what}{span}."
    return Failure(429, "rate_limit_error", message, {"retry-after": str(math.ceil(seconds))})
