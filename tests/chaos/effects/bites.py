"""For each build that is broken on purpose: the run that brings it out, and what the checker must say then."""

from __future__ import annotations

import os

from tests.chaos.effects.plan import Plan

#: Micro-dollars: no limit that these runs reach.
_AMPLE = {"job": 1_000_000, "day": 100_000_000}

_QUIET = Plan(jobs=40, deaths=0, kills=0, freezes=0, slow=0.5, drops=False, limits=_AMPLE)


def _plan(**changes: object) -> Plan:
    from dataclasses import replace

    return replace(_QUIET, **changes)  # type: ignore[arg-type]


#: Shown by each run of the tests; with CHAOS_BITES=all every one is.
ALWAYS = ("record-first", "no-hold")

BITES: dict[str, tuple[Plan, str]] = {
    # a worker is frozen until another one, which has the same events, is in the middle of the same calls
    "no-owner": (
        _plan(variant="no-owner", slow=1.5, freezes=4, frozen="judge", nap=3.5, twice=1, jobs=75),
        r"are spent, its calls come to",
    ),
    # every tenth event is in the hands of two workers
    "no-lease": (_plan(variant="no-lease"), r"was answered \d+ times, with \d+ calls unheard and 0 workers disturbed"),
    "no-reservation": (
        _plan(variant="no-reservation", limits={"agent/judge": 20_000}),
        r"^agent/judge: the API charged \d+, \d+ are booked; 20000 were allowed",
    ),
    "record-first": (
        _plan(variant="record-first", deaths=3, points=("mail-before",)),
        r"was posted; it never came",
    ),
    "no-hold": (
        _plan(variant="no-hold", deaths=4, points=("held-mail-after",)),
        r"mails, though they are to be held",
    ),
}

CHOSEN = list(BITES) if os.environ.get("CHAOS_BITES") == "all" else list(ALWAYS)
