"""For each build that is broken on purpose the schedule that brings it out, and what the checker must say then."""

from __future__ import annotations

from tests.chaos.schedule import Action, Load, Schedule

_SETTINGS = {"FARANDOLE_SESSION_TIMEOUT_MS": "6000", "FARANDOLE_PARTITIONS": "2", "FARANDOLE_BATCH": "20"}


def _kills(agent: str, *times: float) -> tuple[Action, ...]:
    return tuple(Action(at, "kill", f"{agent}-{number % 2}") for number, at in enumerate(times))


def _load(events: int, seconds: float, **more: float | str) -> Load:
    return Load(seed=1, events=events, jobs=events, seconds=seconds, client_jobs=0, **({"odd": 0.0} | more))  # type: ignore[arg-type]


def _schedule(variant: str, load: Load, *actions: Action, agents: tuple[str, ...] = ("quick", "slow")) -> Schedule:
    return Schedule(
        seed=1, load=load, actions=actions, settings=_SETTINGS, agents=agents, projectors=1, broken=variant, rest=30
    )


#: By variant: the schedule, and a pattern of what must be found.
BITES: dict[str, tuple[Schedule, str]] = {
    "commit-before-produce": (
        _schedule("commit-before-produce", _load(600, 8), *_kills("quick", 2, 3.5, 5, 6.5), agents=("quick",)),
        r"quick committed \[\] for",
    ),
    "no-fencing": (
        _schedule(
            "no-fencing",
            _load(200, 6, odd=1.0, work="slow.nap"),
            Action(3, "freeze", "slow-0"),
            Action(3.1, "freeze", "slow-1"),
            Action(11, "thaw", "slow-0"),
            Action(14, "thaw", "slow-1"),
        ),
        r"slow committed jobs\.Worked 2 times for|went back",
    ),
    "count-without-dedup": (
        _schedule(
            "count-without-dedup",
            _load(300, 4),
            Action(2, "duplicate", "elsewhere", 50),
            Action(3, "duplicate", "beside", 50),
            agents=("quick",),
        ),
        r"\(table, fold\) differ in \{'(attempts|events)'",
    ),
    "claims-by-event-id": (
        _schedule("claims-by-event-id", _load(300, 8, odd=0.5, work="slow.nap"), *_kills("slow", 3, 5, 7)),
        r"slow committed \[\] for",
    ),
}
