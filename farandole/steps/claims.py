"""What is asked of the ledger of steps, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from farandole.models.values import Usage


@dataclass(frozen=True, slots=True)
class Step:
    """A named result of one agent's handling of one event, whatever the run: finished steps survive a redrive."""

    event_id: str
    agent: str
    name: str
    trace_id: str
    tenant: str | None = None

    def key(self, generation: int) -> str:
        """The idempotency key: the same for every try, another one only after a person had the step forgotten.

        >>> Step("0189…", "act", "mail", "0189…").key(0)
        'fd-242ef6f938f789aad00bd9ed73c60087'
        """
        parts = (self.event_id, self.agent, self.name, str(generation))
        return f"fd-{sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class Allowance:
    """One budget that a call must fit into: its row, and how much may be spent there, in micro-dollars."""

    key: str  #: without the day
    limit: int
    daily: bool  #: the key of its row ends with the UTC day, by the database's clock


@dataclass(frozen=True, slots=True)
class Money:
    """What a model call may cost at most, micro-dollars (None: its price is not known), and where that is reserved."""

    call_id: str  #: of the call that is about to be made
    model: str
    ceiling: int | None
    allowances: tuple[Allowance, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """The wish to run a step."""

    step: Step
    owner: str  #: of the lease: this attempt
    run: int  #: failures for good of other runs do not count
    hold: bool = False  #: a call whose outcome nobody knows is not repeated
    money: Money | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A model call that has ended, for `usage`."""

    call_id: str
    model: str
    usage: Usage | None
    micro_dollars: int | None
    latency_ms: int
    stop_reason: str | None
    outcome: str
    request_id: str | None


State = Literal["leased", "done", "failed", "held"]


@dataclass(frozen=True, slots=True)
class Finish:
    """How a step ended; state `leased`: only one of its calls did, and it goes on."""

    step: Step
    owner: str
    state: State
    result: str | None = None  #: JSON
    error: str | None = None
    failure: str | None = None  #: JSON: it failed for good, in the run `failed_run`
    failed_run: int | None = None
    trail: str | None = None  #: JSON
    call: Call | None = None


@dataclass(frozen=True, slots=True)
class Granted:
    """Run it. `trail` are a model's replies so far, JSON objects, when somebody began before."""

    generation: int
    trail: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """It has run: its result as JSON text; None when it could not be kept, for the reason `error`."""

    result: str | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FailedForGood:
    """It has failed in this run: the JSON that describes the failure."""

    failure: str


@dataclass(frozen=True, slots=True)
class Leased:
    """A live owner is at it, for so many seconds more unless it goes on."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Held:
    """Nobody knows whether it has happened; a person decides."""

    error: str


@dataclass(frozen=True, slots=True)
class OverBudget:
    """It does not fit: `needed` more micro-dollars into the row `key`, in which `taken` of `limit` are spent or reserved."""

    key: str
    limit: int
    taken: int
    needed: int
    renews_in: float | None  #: seconds, of a daily budget


Answer = Granted | Done | FailedForGood | Leased | Held | OverBudget
