"""What a run is made of, and how it went."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is made of. Limits are micro-dollars; keys as in the table `budget`, without the day."""

    jobs: int = 150
    seed: int = 1
    deaths: int = 2  #: at each point at which workers kill themselves
    kills: int = 4  #: from outside, whatever they are at
    freezes: int = 2
    nap: float = 9.0  #: seconds of a freeze: beyond leases, and beyond sessions in the group
    twice: int = 10  #: every so many-th event is in the hands of two workers
    points: tuple[str, ...] = ()  #: of those deaths; (): all
    frozen: str = ""  #: the agent whose workers are frozen; "": any
    variant: str = "none"
    slow: float = 0.0  #: seconds that each call takes; 0: a storm instead
    drops: bool = True
    limits: dict[str, int] = field(
        default_factory=lambda: {"job": 40_000, "agent/judge": 4_000_000, "day": 6_000_000, "tenant/poor": 60_000}
    )
    seconds: float = 240  #: at most


@dataclass(slots=True)
class Result:
    """How it went."""

    complaints: list[str] = field(default_factory=list)
    deaths: Counter[str] = field(default_factory=Counter)
    freezes: Counter[str] = field(default_factory=Counter)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        return not self.complaints
