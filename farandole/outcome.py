"""How an attempt ends: a value from a closed set, matched exhaustively where the worker settles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from farandole.event import Event


@dataclass(frozen=True, slots=True, init=False)
class Emitted:
    """The handler returned: none, one or many events.

    >>> Emitted([]) == Emitted(())
    True
    """

    events: tuple[Event, ...]
    attempts: int = field(compare=False)

    def __init__(self, events: Iterable[Event] = (), attempts: int = 1) -> None:
        object.__setattr__(self, "events", tuple(events))
        object.__setattr__(self, "attempts", attempts)


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler decided that the job ends here (`raise Fail`)."""

    reason: str
    detail: str | None = field(default=None, compare=False)
    attempts: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """The event cannot be handled. `cause` is a stable word: undecodable, empty, unknown_schema, invalid, not_read, rejected,
    not_retried, attempts, wrong_output, too_large, refused, truncated, invalid_output, context_too_long, held, result,
    step_name, steps, killed; `error` is the first error met, `last_error` the last one, for
    people."""

    cause: str
    error: str = field(compare=False)
    attempts: int = field(default=1, compare=False)
    last_error: str = field(default="", compare=False)  #: "" where there was but one


@dataclass(frozen=True, slots=True)
class Skipped:
    """Nothing to do: "duplicate" (its event id was claimed from another record), "not_read" (a type of the topic that
    this agent does not handle), "suspended" (a wait has it) or "loop" (word of a failure, handed round for ever)."""

    why: str


@dataclass(frozen=True, slots=True)
class Suspended:
    """To be tried again `after` seconds, by nobody until then: the record goes into the table `wait`."""

    after: float = field(compare=False)
    error: str = field(default="", compare=False)  #: the first one met, for people
    attempts: int = 1  #: made so far
    kind: str = "retry"  #: or "behind": an earlier event of the key waits


Outcome = Emitted | Failed | DeadLettered | Skipped | Suspended
