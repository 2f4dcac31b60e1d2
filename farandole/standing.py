"""How agents and the projector stand, as values: what `farandole status` shows and its `--json` prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farandole.retention.sizes import Storage

#: Seconds. A worker shows itself every two; one that was not heard of for this long is taken for gone.
ALIVE = 15.0


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker of an agent, as it last showed itself."""

    slot: int
    host: str
    pid: int
    started_at: datetime
    age: float  #: seconds since its last sign of life
    alive: bool
    state: str  #: running, draining, waiting, braked, stopped; or gone
    reason: str | None  #: why it stands still
    vitals: dict[str, Any]  #: everything it told


@dataclass(frozen=True, slots=True)
class Wait:
    """The waits of one kind. `count` are not woken yet, `overdue` of these have been due for five seconds or more."""

    kind: str
    count: int
    woken: int
    overdue: int
    next_due: datetime | None


@dataclass(frozen=True, slots=True)
class Lag:
    """Records between the committed offsets and the end of the log, transaction markers included.

    `seconds` is the age of the oldest of them, by Kafka's timestamp; None where there is none or it was not to be had.
    """

    records: int
    seconds: float | None
    partitions: dict[str, dict[int, int]]  #: by topic (without the namespace) and partition, those that are behind


@dataclass(frozen=True, slots=True)
class Gap:
    """A partition that waits for a person."""

    topic: str
    partition: int
    reason: str


@dataclass(frozen=True, slots=True)
class AgentStanding:
    """One agent. None stands for what could not be had: the broker's part, or the database's."""

    agent: str
    declared: bool  #: by the project; else a group that is in the namespace still
    topic: str | None
    lag: Lag | None = None
    wake_lag: Lag | None = None  #: records that were woken and not handled yet
    members: int | None = None  #: of the consumer group
    workers: list[Worker] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    dead_letters: dict[str, int] = field(default_factory=dict)  #: open ones, by cause
    gaps: list[Gap] = field(default_factory=list)

    @property
    def known(self) -> bool:
        """Whether there is anything of that name."""
        return bool(self.topic or self.members or self.workers or self.waits or self.dead_letters or self.gaps)

    @property
    def alive(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.alive]

    def total(self, what: str) -> int:
        """The sum of one of the vitals (in_flight, queued, uncommitted, paused, held) over the living workers."""
        return sum(worker.vitals.get(what) or 0 for worker in self.alive)

    @property
    def rates(self) -> dict[str, float]:
        """Events a second, over the last ten: handled, emitted, dead_lettered."""
        told = [worker.vitals.get("rates") or {} for worker in self.alive]
        return {
            name: round(sum((one.get(name, 0) for one in told), 0.0), 3)
            for name in ("handled", "emitted", "dead_lettered")
        }

    @property
    def last_error(self) -> tuple[str, str] | None:
        """The newest error of any worker, the time (ISO 8601) first."""
        told = [(one.vitals.get("last_error_at"), one.vitals.get("last_error")) for one in self.workers]
        return max(((at, text) for at, text in told if at and text), default=None)

    @property
    def still(self) -> list[str]:
        """Why it stands still, a sentence each; lag alone is no reason."""
        found = _sentences(self.gaps)
        stuck = [one for one in self.alive if one.state in ("braked", "waiting")]
        ended = [one for one in self.workers if one.state == "stopped" and not self.alive and not self.gaps]
        return found + [f"slot {one.slot} {one.state}: {one.reason or 'no reason given'}" for one in (*stuck, *ended)]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON. The names are part of the interface."""
        error = self.last_error
        return {
            "agent": self.agent,
            "declared": self.declared,
            "topic": self.topic,
            "lag": _lag(self.lag),
            "wake_lag": _lag(self.wake_lag),
            "members": self.members,
            **{what: self.total(what) for what in ("in_flight", "queued", "uncommitted", "paused")},
            "rates": self.rates,
            "waits": [_plain(one) for one in self.waits],
            "dead_letters": {"open": sum(self.dead_letters.values()), "by_cause": self.dead_letters},
            "workers": [_plain(one) for one in self.workers],
            "last_error": {"at": error[0], "error": error[1]} if error else None,
            "gaps": [_plain(one) for one in self.gaps],
            "still": self.still,
        }


@dataclass(frozen=True, slots=True)
class ProjectorStanding:
    """The projector: how far it is behind, and what waits for a person there."""

    lag: Lag | None = None
    members: int | None = None
    gaps: list[Gap] = field(default_factory=list)
    suspended: dict[str, str] = field(default_factory=dict)  #: projections by name, with the error
    parked: int | None = None
    storage: Storage | None = None  #: how large the projection is, and how long jobs are kept

    @property
    def still(self) -> list[str]:
        """Why some of it stands still, a sentence each."""
        return _sentences(self.gaps) + [
            f"projection {name} is suspended: {error}" for name, error in self.suspended.items()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON. The names are part of the interface."""
        return {
            "lag": _lag(self.lag),
            "members": self.members,
            "gaps": [_plain(one) for one in self.gaps],
            "suspended": self.suspended,
            "parked": self.parked,
            "storage": self.storage.as_dict() if self.storage else None,
            "still": self.still,
        }


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything that was found. `broker` and `database` are None when they answered, else why they did not."""

    agents: list[AgentStanding]
    projector: ProjectorStanding
    broker: str | None = None
    database: str | None = None
    notes: list[str] = field(default_factory=list)  #: what could not be had besides, and why

    @property
    def still(self) -> list[str]:
        """Everything that stands still, each with who it is."""
        found = [f"{one.agent}: {reason}" for one in self.agents for reason in one.still]
        return found + [f"projector: {reason}" for reason in self.projector.still]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON. The names are part of the interface."""
        return {
            "broker": {"answers": self.broker is None, "error": self.broker},
            "database": {"answers": self.database is None, "error": self.database},
            "agents": [one.as_dict() for one in self.agents],
            "projector": self.projector.as_dict(),
            "notes": self.notes,
            "still": self.still,
        }


def _sentences(gaps: list[Gap]) -> list[str]:
    """One for all partitions of a topic that stand still for the same reason."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for gap in gaps:
        numbers.setdefault((gap.topic, gap.reason), []).append(gap.partition)
    return [f"gap: {topic} {sorted(where)}: {reason}" for (topic, reason), where in numbers.items()]


def _lag(lag: Lag | None) -> dict[str, Any] | None:
    if lag is None:
        return None
    behind = [
        {"topic": topic, "partition": number, "records": records}
        for topic, numbers in lag.partitions.items()
        for number, records in numbers.items()
    ]
    return {"records": lag.records, "seconds": lag.seconds, "behind": behind}


def _plain(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}
