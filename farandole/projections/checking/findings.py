"""What a check says of a projection: faults and warnings, each with what shows it and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["fault", "warning"]

#: What a finding can be, for programs that filter:
#: - order, inside_batch, batching, at_once, refold, duplicates, time: the rows depend on it; a counterexample shows how
#: - error: the fold refuses events; typo: the SQL itself is wrong
#: - transaction, foreign_write: fold.sql does what belongs to the projector
#: - deadlock, float, key, tables, empty_batch, clock, reads: see `what`
Kind = Literal[
    "order",
    "inside_batch",
    "batching",
    "at_once",
    "refold",
    "duplicates",
    "time",
    "error",
    "typo",
    "transaction",
    "foreign_write",
    "deadlock",
    "float",
    "key",
    "tables",
    "empty_batch",
    "clock",
    "reads",
]


@dataclass(frozen=True, slots=True)
class Shown:
    """An event of a counterexample, as it lies in event_log."""

    letter: str  #: what it is called in the orders
    event_id: str
    trace_id: str
    type: str
    stage: str | None
    run: int
    hop: int
    occurred_at: str
    body: str  #: shortened
    generated: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """The rows of one table that are there after one of two foldings only; values as text, in the order of `columns`."""

    table: str
    columns: list[str]
    first: list[tuple[str | None, ...]]
    second: list[tuple[str | None, ...]]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Events that leave other rows when they are folded another way. Of an error: `second` says what was refused."""

    events: list[Shown]
    first: str
    second: str
    rows: list[Difference] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong (a fault) or worth knowing (a warning), in a sentence, and what to do about it."""

    kind: Kind
    what: str
    advice: list[str] = field(default_factory=list)
    severity: Severity = "fault"
    example: Counterexample | None = None


@dataclass(slots=True)
class Report:
    """What the check of one projection found. `events` and `trials` count what it was tried with."""

    projection: str
    folder: str
    findings: list[Finding] = field(default_factory=list)
    events: int = 0
    trials: int = 0

    @property
    def passed(self) -> bool:
        return not any(finding.severity == "fault" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {"projection": self.projection, "passed": self.passed} | asdict(self)
