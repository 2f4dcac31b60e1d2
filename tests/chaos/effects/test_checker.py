"""The checker of effects says nothing of a run in which all is well, and of each damage what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.effects.checker import MARK, Evidence, complaints, cost, key_of

JOB, TENANT = "0000-job", "poor"


def step(agent: str, name: str, **more: Any) -> dict[str, Any]:
    made = {"event_id": f"{agent}-event", "agent": agent, "name": name, "generation": 0, "trace_id": JOB}
    return made | {"tenant": TENANT, "state": "done", "begun": 1} | more


ASK, MAIL = step("judge", "Verdict"), step("post", "mail")
USED = {"input_tokens": 100, "output_tokens": MARK}
CALL = {"key": key_of(ASK), "model": "claude-cheap", "usage": USED}
COST = cost(CALL)
KEYS = [f"job/{JOB}", "agent/judge/2026-01-01", "day/2026-01-01", "tenant/poor/2026-01-01"]
ROW = {
    "event_id": "judge-event",
    "agent": "judge",
    "step": "Verdict",
    "outcome": "answered",
    "micro_dollars": COST,
    "input_tokens": 100,
    "output_tokens": MARK,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "budgets": KEYS,
}
SENT = f"<{key_of(MAIL)}@chaos>"

WELL = Evidence(
    jobs={JOB: False},
    calls=[CALL],
    mails=[SENT],
    drops={},
    steps=[ASK, MAIL],
    usage=[ROW],
    budgets=dict.fromkeys(KEYS, (COST, 0)),
    limits={"job": 1000, "agent/judge": 1000, "day": 1000, "tenant/poor": 1000},
    posted=[{"trace_id": JOB, "message_id": SENT}],
    failed=[],
    dead=[],
    waits=0,
)

DAMAGES: dict[str, tuple[Evidence, str]] = {
    "no end": (replace(WELL, posted=[]), "has come to no end"),
    "an end without a reason of ours": (
        replace(WELL, failed=[{"trace_id": JOB, "reason": "odd"}]),
        "failed for 'odd'",
    ),
    "held, not to be": (replace(WELL, dead=[("post", "held", JOB)]), "was not to be"),
    "a second mail under hold": (replace(WELL, jobs={JOB: True}, mails=[SENT] * 2), "though they are to be held"),
    "a second mail of nothing": (replace(WELL, mails=[SENT] * 2), "2 mails, 0 dropped"),
    "a mail of no step": (replace(WELL, mails=[SENT, "<fd-0@chaos>"]), "is of no step"),
    "no mail": (replace(WELL, mails=[]), "it never came"),
    "a call without a row": (replace(WELL, usage=[]), "1 calls, 0 rows of usage"),
    "a row without a call": (replace(WELL, calls=[]), "0 calls, 1 rows of usage"),
    "a second answer": (replace(WELL, calls=[CALL] * 2, usage=[ROW] * 2), "was answered 2 times"),
    "other tokens": (replace(WELL, usage=[ROW | {"input_tokens": 99}]), "did not charge"),
    "a call of no step": (replace(WELL, steps=[MAIL]), "which is no step"),
    "above a job's limit": (replace(WELL, limits={"job": COST - 1}), f"{COST - 1} were allowed"),
    "above a day's limit": (replace(WELL, limits={"day": COST - 1}), f"{COST - 1} were allowed"),
    "less booked than charged": (replace(WELL, budgets={KEYS[0]: (COST - 1, 0)}), f"and {COST - 1} are booked"),
    "reserved for ever": (replace(WELL, budgets={KEYS[0]: (COST, 7)}), "7 are reserved for nothing"),
    "spent and not told": (replace(WELL, budgets={KEYS[0]: (COST + 1, 0)}), f"its calls come to {COST}"),
    "a lease for ever": (replace(WELL, steps=[ASK, MAIL | {"state": "leased"}]), "is still leased"),
    "a wait for ever": (replace(WELL, waits=1), "1 handlings wait"),
}


def test_of_a_run_in_which_all_is_well_it_says_nothing() -> None:
    assert complaints(WELL) == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_of_each_damage_it_says_what_is_wrong(damage: str) -> None:
    evidence, pattern = DAMAGES[damage]
    found = complaints(evidence)
    assert any(pattern in complaint for complaint in found), found


@pytest.mark.parametrize(
    "more",
    [
        lambda: replace(WELL, mails=[SENT] * 2, drops={SENT: 1}, steps=[ASK, MAIL | {"begun": 2}]),
        lambda: replace(WELL, mails=[SENT] * 2, disturbed={"post": 1}, concurrency=1, steps=[ASK, MAIL | {"begun": 2}]),
        lambda: replace(WELL, jobs={JOB: True}, posted=[], dead=[("post", "held", JOB)]),
    ],
)
def test_what_may_happen_is_no_complaint(more: Callable[[], Evidence]) -> None:
    assert complaints(more()) == []
