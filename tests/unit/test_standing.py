"""What is shown of agents and projector: safe to look at, with stable names for programs, and an exit code for each case."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from farandole.cli.console import as_json
from farandole.cli.standing_view import standing_view
from farandole.cli.status import Report
from farandole.errors import ExitCode
from farandole.gaps import Known, judge
from farandole.stack.status import Condition, ServiceStatus, Status
from farandole.standing import AgentStanding, Gap, Lag, ProjectorStanding, Standing, Wait, Worker
from farandole.worker.vitals import Signs, rates

EVIL = "a\x1b]0;owned\x07b\x1b[2Jc\r\nd\u202etxt.exe\u2066\x9b31m\udc80[bold]e[/bold]"
HARMFUL = {"\x1b", "\x07", "\r", "\x9b", "\u202e", "\u2066", "\udc80"}
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def worker(state: str = "running", age: float = 1, alive: bool = True, **vitals: Any) -> Worker:
    return Worker(0, EVIL, 7, NOW, age, alive, state, vitals.pop("reason", None), vitals)


def everything() -> AgentStanding:
    """An agent of which there is something to say everywhere."""
    told: dict[str, Any] = {
        "in_flight": 3,
        "last_error": EVIL,
        "last_error_at": "2026-01-02T03:04:00+00:00",
        "reason": EVIL,
    }
    return AgentStanding(
        *(EVIL, False, EVIL, Lag(2, 1.5, {EVIL: {0: 2}}), Lag(0, None, {}), 1),
        [worker("braked", **told), worker("stopped", 99, False, reason=EVIL), worker("gone", 99, False)],
        [Wait(EVIL, 1, 2, 1, NOW)],
        {EVIL: 4},
        [Gap(EVIL, 0, EVIL)],
    )


def whole(**changes: Any) -> Standing:
    projector = ProjectorStanding(Lag(1, None, {EVIL: {0: 1}}), 1, [Gap(EVIL, 0, EVIL)], {EVIL: EVIL}, 3)
    return Standing([everything()], projector, EVIL, EVIL, [EVIL], **changes)


def drawn(standing: Standing, *, closely: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=4000, highlight=False).print(standing_view(standing, NOW, closely=closely))
    return out.getvalue()


@pytest.mark.parametrize("closely", [False, True])
def test_no_view_lets_data_command_the_terminal(closely: bool) -> None:
    shown = drawn(whole(), closely=closely)
    assert not HARMFUL & set(shown)
    assert "[bold]e[/bold]" in shown


def test_the_json_is_safe_to_look_at_and_means_the_same() -> None:
    text = as_json(Report(None, whole()).as_dict(), indent=2)
    assert not HARMFUL & set(text)
    assert json.loads(text)["agents"][0]["agent"] == EVIL


def test_the_names_that_programs_use_do_not_change() -> None:
    found = json.loads(as_json(Report(None, whole()).as_dict()))
    assert set(found) == {
        *("exit_code", "exit", "problem", "broker", "database", "agents", "projector", "notes", "still"),
    }
    assert list(found["agents"][0]) == [
        *("agent", "declared", "topic", "lag", "wake_lag", "members", "in_flight", "queued", "uncommitted", "paused"),
        *("rates", "waits", "dead_letters", "workers", "last_error", "gaps", "still"),
    ]
    assert list(found["agents"][0]["lag"]) == ["records", "seconds", "behind"]
    assert list(found["agents"][0]["waits"][0]) == ["kind", "count", "woken", "overdue", "next_due"]
    assert list(found["agents"][0]["workers"][0]) == [
        *("slot", "host", "pid", "started_at", "age", "alive", "state", "reason", "vitals"),
    ]
    assert list(found["projector"]) == ["lag", "members", "gaps", "suspended", "parked", "storage", "still"]


def test_what_a_worker_tells_has_the_names_that_are_read() -> None:
    told = Signs().vitals(in_flight=1, queued=2, uncommitted=3, paused=4, held=5)
    read = {"state", "reason", "in_flight", "queued", "uncommitted", "paused", "held", "last_error", "last_error_at"}
    assert read <= set(told.__slots__)
    assert set(rates({}, {}, 1.0)) == set(AgentStanding("x", True, None).rates)


def test_an_agent_without_a_worker_says_so_and_lag_alone_is_no_error() -> None:
    lagging = Standing([AgentStanding("price", True, "t", Lag(5, 61.0, {"t": {0: 5}}))], ProjectorStanding())
    assert Report(None, lagging).code == ExitCode.OK
    assert "no worker" in drawn(lagging) and "1 m 01 s" in drawn(lagging)


def stack(condition: Condition) -> Status:
    return Status((ServiceStatus("kafka", condition, 1, 2, "4", 0, 0, None, "log"),), None)


STILL = AgentStanding("price", True, "t", workers=[worker("braked", reason="too many")])
SUSPENDED = ProjectorStanding(suspended={"totals": "wrong"})


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (Report(None, Standing([], ProjectorStanding())), ExitCode.OK),
        (Report(stack(Condition.RUNNING), Standing([], ProjectorStanding())), ExitCode.OK),
        (Report(None, Standing([STILL], ProjectorStanding())), ExitCode.STANDS_STILL),
        (Report(None, Standing([], SUSPENDED)), ExitCode.STANDS_STILL),
        (Report(None, Standing([], SUSPENDED), "agents/x.py:1: wrong"), ExitCode.CONFIGURATION),
        (Report(None, Standing([STILL], ProjectorStanding(), broker="away")), ExitCode.UNREACHABLE),
        (Report(None, Standing([STILL], ProjectorStanding(), database="away")), ExitCode.UNREACHABLE),
        (Report(stack(Condition.CRASHED), Standing([STILL], ProjectorStanding(), broker="away")), ExitCode.FAILED),
        (Report(stack(Condition.STOPPED), None), ExitCode.FAILED),
    ],
)
def test_the_exit_code_tells_the_first_thing_that_is_wrong(report: Report, code: ExitCode) -> None:
    assert report.code == code
    assert report.as_dict()["exit_code"] == code


@pytest.mark.parametrize(
    ("known", "committed", "topic_id", "gap"),
    [
        (None, -1001, "a", None),
        (None, 5, "a", None),
        (Known("a", 5), 6, "a", None),
        (Known("a", 5), 6, None, None),  # the broker does not tell: it is asked again later
        (Known(None, 5), 6, "a", None),
        (Known("a", None), -1001, "a", None),  # it was here, and its first offset never got to Kafka
        (Known("a", 0), -1001, "a", "no longer in Kafka"),
        (Known("a", 5), 6, "b", "offset 6 was meant for the old one"),
        (Known("a", 5), -1001, "b", "offset 5 was meant for the old one"),
        (Known("a", 5, go_on_at=0), -1001, "b", None),  # a person has decided
    ],
)
def test_a_gap_is_told_from_a_new_group(
    known: Known | None, committed: int, topic_id: str | None, gap: str | None
) -> None:
    found = judge(known, committed, topic_id)
    assert (found is None) if gap is None else (gap in (found or ""))
