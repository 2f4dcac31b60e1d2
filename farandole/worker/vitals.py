"""How a worker is at one moment, and the notes it makes as it goes so that this can be told."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from farandole.outcome import DeadLettered, Emitted, Outcome, Skipped, Suspended

#: Seconds. An outage that nothing was heard of for this long is over; a try takes less, its pause included.
_OUTAGE_FRESH = 15.0
#: Characters of an error that are kept.
_ERROR = 500

#: Beside the outcomes, `counts` has the number of events that were emitted.
EVENTS = "events"

#: A second, by name: the counts that each rate adds up.
RATES = {
    "handled": ("Emitted", "Failed", "DeadLettered", "Suspended"),
    "emitted": (EVENTS,),
    "dead_lettered": ("DeadLettered",),
}


class State(StrEnum):
    """What a worker is doing."""

    RUNNING = "running"
    DRAINING = "draining"  #: asked to stop; finishes what it has in hand
    WAITING = "waiting"  #: for a broker or a database that is away
    PAUSED = "paused"  #: what it asks of models has to wait: a limit, a model that is overloaded or does not answer
    BRAKED = "braked"  #: takes nothing: too much of what it handled was dead-lettered
    STOPPED = "stopped"  #: ended by itself; the reason says why


@dataclass(frozen=True, slots=True)
class Vitals:
    """How a worker is at one moment; what the column `worker.vitals` holds, with `rates` beside it."""

    state: State
    reason: str | None  #: why it stands still; None while it runs
    in_flight: int  #: handlings at work
    queued: int  #: records taken and not yet handled
    uncommitted: int  #: records handled and not yet committed
    paused: int  #: partitions that are not fetched, because enough is in hand
    held: int  #: partitions that are its own
    counts: dict[str, int]  #: outcomes since its start, by name; and `EVENTS`
    last_error: str | None
    last_error_at: datetime | None


@dataclass(slots=True)
class Signs:
    """What a worker notes as it goes. On the event loop only, `outage` apart, which any thread may call."""

    counts: Counter[str] = field(default_factory=Counter)  #: outcomes that were settled, by name; and `EVENTS`
    braked: str | None = None  #: why the brake is on; None: it is off
    draining: bool = False
    paused: Callable[[], str | None] = lambda: None  #: why calls of models have to wait now
    last_error: str | None = None
    last_error_at: datetime | None = None
    _outage: tuple[float, str] | None = None

    def settled(self, outcome: Outcome | None) -> None:
        """An outcome was committed: count it, and keep its error."""
        self.counts[outcome.why if isinstance(outcome, Skipped) else type(outcome).__name__] += 1
        if isinstance(outcome, Emitted):
            self.counts[EVENTS] += len(outcome.events)
        elif isinstance(outcome, DeadLettered):
            self.error(f"{outcome.cause}: {outcome.error}")
        elif isinstance(outcome, Suspended) and outcome.error:
            self.error(outcome.error)

    def error(self, error: BaseException | str) -> None:
        """The last thing that went wrong, with its time."""
        self.last_error, self.last_error_at = _short(error), datetime.now(UTC)

    def outage(self, failure: BaseException) -> None:
        """Something that the worker needs is away: called at every try, forgotten a while after the last one."""
        self._outage = (time.monotonic(), _short(failure))

    def vitals(self, *, in_flight: int, queued: int, uncommitted: int, paused: int, held: int) -> Vitals:
        """The picture of this moment."""
        state, reason = State.DRAINING if self.draining else State.RUNNING, None
        outage = self._outage
        if why := self.paused():
            state, reason = State.PAUSED, why
        if self.braked:
            state, reason = State.BRAKED, self.braked
        if outage and time.monotonic() - outage[0] < _OUTAGE_FRESH:
            state, reason = State.WAITING, outage[1]
        counts = dict(self.counts)
        return Vitals(
            state, reason, in_flight, queued, uncommitted, paused, held, counts, self.last_error, self.last_error_at
        )


def rates(before: dict[str, int], now: dict[str, int], seconds: float) -> dict[str, float]:
    """What came a second between two counts; zeros where there is nothing to compare.

    >>> rates({"Emitted": 10}, {"Emitted": 30, "Failed": 4}, 2.0)
    {'handled': 12.0, 'emitted': 0.0, 'dead_lettered': 0.0}
    """

    def rate(parts: tuple[str, ...]) -> float:
        came = sum(now.get(part, 0) - before.get(part, 0) for part in parts)
        return round(came / seconds, 3) if seconds > 0 else 0.0

    return {name: rate(parts) for name, parts in RATES.items()}


def _short(error: BaseException | str) -> str:
    return (error if isinstance(error, str) else f"{type(error).__name__}: {error}")[:_ERROR]
