"""For each build that is broken on purpose the schedule that brings it out, and what the checker must say then."""

from __future__ import annotations

import os

from tests.chaos.schedule import Action, Load, Schedule

_SETTINGS = {"FARANDOLE_SESSION_TIMEOUT_MS": "6000", "FARANDOLE_PARTITIONS": "2", "FARANDOLE_BATCH": "20"}


def _kills(agent: str, *times: float) -> tuple[Action, ...]:
    """The worker that is at work is killed, and started again at once."""
    return tuple(Action(at, "kill", f"{agent}-busy") for at in times)


def _load(events: int, seconds: float, slow: float = 0.0) -> Load:
    """Each event a job; a share of them `slow`: in the hands of their handler for 1 to 3 s."""
    return Load(seed=1, events=events, jobs=events, seconds=seconds, client_jobs=0, odd=slow, work="slow.nap")


def _schedule(variant: str, group: str, load: Load, *actions: Action) -> Schedule:
    agents = ("quick", "slow") if group == "slow" else ("quick",)
    return Schedule(
        seed=1,
        load=load,
        actions=actions,
        settings=_SETTINGS,
        agents=agents,
        projectors=1,
        broken=(variant, group),
        settle=True,
        rest=30,
    )


#: By variant: the schedule, and a pattern of what must be found.
#: Shown by each run of the tests; with CHAOS_BITES=all every one is.
ALWAYS = ("no-fencing", "count-without-dedup")

BITES: dict[str, tuple[Schedule, str]] = {
    # kills fall between the two commits, which follow one another all the time
    "commit-before-produce": (
        _schedule("commit-before-produce", "quick", _load(800, 9), *_kills("quick", 3, 6, 9)),
        r"^quick committed \[\] for",
    ),
    # frozen with its hands full until its session has ended and its peer has done its work, then awake again
    "no-fencing": (
        _schedule(
            "no-fencing", "slow", _load(100, 4, slow=1), Action(3, "freeze", "slow-busy"), Action(11, "thaw-all")
        ),
        r"^slow committed jobs\.Worked 2 times for",
    ),
    # killed while slow ones hold the position back, and what came after them is committed
    "no-metadata": (
        _schedule("no-metadata", "slow", _load(300, 6, slow=0.2), *_kills("slow", 3, 5)),
        r"^slow committed jobs\.Worked 2 times for",
    ),
    "count-without-dedup": (
        _schedule(
            "count-without-dedup",
            "projector",
            _load(300, 4),
            Action(2, "duplicate", "elsewhere", 50),
            Action(3, "duplicate", "beside", 50),
        ),
        r"\(table, fold\) differ in .*'events'",
    ),
    # killed with claims made and nothing settled
    "claims-by-event-id": (
        _schedule("claims-by-event-id", "slow", _load(100, 6, slow=0.5), *_kills("slow", 3, 5)),
        r"^slow committed \[\] for",
    ),
}

CHOSEN = list(BITES) if os.environ.get("CHAOS_BITES") == "all" else list(ALWAYS)
