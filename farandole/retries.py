"""When a failed attempt is made again and after how long, and which errors end the handling at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

from farandole import durations
from farandole.errors import ConfigurationError, Fail, FarandoleError, Poison, Reject, Retry

Errors = type[Exception] | Iterable[type[Exception]]
Order = Literal["overtake", "hold"]

#: What a handler says in the runtime's own words: neither list may give them another meaning.
_OWN = (Retry, Reject, Fail, Poison, FarandoleError)


def seconds(value: str | float, what: str, *, zero: bool = False) -> float:
    """A duration in seconds, from a number or from text such as "250ms", "60s", "5m"; with `zero` it may be none at all.

    >>> seconds("250ms", "backoff")
    0.25
    """
    found = durations.read(value)
    if found is None or not (0 < found < inf or (zero and found == 0)):
        raise ConfigurationError(f"{what} is {value!r}; expected a duration such as '250ms', '60s' or '5m'")
    return found


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """What an agent does about errors. Durations are in seconds; the arithmetic is pure, its chance is given to it."""

    attempts: int = 4  #: how often a failing handler is tried
    backoff: float = 0.25  #: before the second attempt; doubles with each
    max_backoff: float = 300.0  #: no wait of the policy's own is longer
    in_place: float = 1.0  #: a wait up to this is made where the handler runs, a longer one by a row of `wait`
    retry_on: tuple[type[Exception], ...] | None = None  #: tried again, with timeouts and `Retry`; None: every error
    reject_on: tuple[type[Exception], ...] = ()  #: never tried again
    order: Order = "overtake"  #: "hold": later events of a key wait for an earlier one that waits

    def ceiling(self, attempt: int) -> float:
        """The longest wait after attempt number `attempt`, which counts from 1."""
        return min(self.max_backoff, self.backoff * 2.0 ** min(attempt - 1, 1000))  # 2.0 ** 1024 is no float any more

    def wait(self, attempt: int, error: Exception, chance: float) -> float:
        """How long to wait after attempt number `attempt` failed with `error`; exactly what a `Retry(after=…)` says.

        `chance`, from 0 to 1, takes off up to a half: many handlings that failed together do not come back together.
        """
        if isinstance(error, Retry) and error.after is not None:
            return float(error.after)
        return self.ceiling(attempt) * (1.0 - chance / 2)

    def ends_at_once(self, error: Exception) -> str | None:
        """The cause to dead-letter with when an attempt that failed with `error` is not made again; None when it is."""
        if isinstance(error, Retry):
            return None
        if isinstance(error, self.reject_on):
            return "rejected"
        if self.retry_on is None or isinstance(error, (*self.retry_on, TimeoutError)):
            return None
        return "not_retried"


def policy(
    who: str,
    *,
    attempts: int,
    backoff: str | float,
    max_backoff: str | float,
    in_place: str | float,
    retry_on: Errors | None,
    reject_on: Errors,
    order: str,
) -> RetryPolicy:
    """The policy that a user's arguments describe. Raises ConfigurationError, beginning with `who`, for the wrong one."""
    if not isinstance(attempts, int) or attempts < 1:
        raise ConfigurationError(f"{who}: attempts is {attempts!r}; expected 1 or more")
    first, most = seconds(backoff, f"{who}: backoff"), seconds(max_backoff, f"{who}: max_backoff")
    if first > most:
        raise ConfigurationError(f"{who}: backoff is {backoff!r}, longer than max_backoff, which is {max_backoff!r}")
    if order not in get_args(Order):
        raise ConfigurationError(f"{who}: order is {order!r}; expected 'overtake' or 'hold'")
    again = None if retry_on is None else _errors(retry_on, f"{who}: retry_on")
    never = _errors(reject_on, f"{who}: reject_on")
    for kind in again or ():
        if issubclass(kind, never):
            raise ConfigurationError(f"{who}: retry_on has {kind.__name__}, which reject_on rejects at once")
    return RetryPolicy(
        attempts,
        first,
        most,
        seconds(in_place, f"{who}: in_place", zero=True),
        again,
        never,
        "hold" if order == "hold" else "overtake",
    )


def _errors(given: Errors, what: str) -> tuple[type[Exception], ...]:
    if not isinstance(given, type | Iterable):
        raise ConfigurationError(f"{what} is {given!r}; expected types of exceptions")
    found = (given,) if isinstance(given, type) else tuple(given)
    for kind in found:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise ConfigurationError(f"{what} has {kind!r}; expected types of exceptions")
        if issubclass(kind, _OWN):
            raise ConfigurationError(f"{what} has {kind.__name__}, whose meaning is fixed")
    return found
