"""What must neither fail nor keep calls waiting: long pauses, long outages, slow probes, a clock that was set back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from farandole.models.configured import Limit
from farandole.models.errors import Overloaded
from farandole.models.values import Heard, Usage
from farandole.pace import shared
from farandole.pace.report import Estimate, Report
from farandole.pace.store import HORIZON
from farandole.postgres import Connection
from tests.integration.pace.conftest import Office, request, until
from tests.integration.pace.desk import Desk

ONE = Estimate(1, 1)


@pytest.fixture
def desk(connection: Connection[Any]) -> Desk:
    return Desk(connection)


def test_a_probe_that_is_still_under_way_is_not_joined_by_another_and_opens_when_it_ends(desk: Desk) -> None:
    desk.ask(report=Report(overloaded=True, why="overloaded"))
    desk.ahead += 2
    assert desk.ask(ONE, probe_seconds=30).probe
    for _ in range(10):
        desk.ahead += 20
        desk.ask(report=Report(probing="me"), probe_seconds=30)
        assert not desk.ask(ONE, probe_seconds=30).probe
    assert desk.ask(report=Report(succeeded=True, probe="me", probe_won=True)).seen.level == 0


def test_a_clock_that_was_set_back_holds_calls_for_a_minute_at_most(desk: Desk) -> None:
    limit = Limit(requests=600, input_tokens=6000, output_tokens=6000)
    desk.ahead = 86_400.0
    assert desk.ask(ONE, limit=limit).slots
    desk.ahead = 0.0
    assert not desk.ask(ONE, limit=limit).slots
    desk.ahead = 60.0 + HORIZON + 1
    assert desk.ask(ONE, limit=limit).slots


@pytest.mark.parametrize(("kind", "told"), [("requests", 60.0), ("input", 600.0), ("output", 600.0)])
def test_the_server_is_believed_when_its_limit_is_smaller(desk: Desk, kind: str, told: float) -> None:
    limit, each = Limit(requests=6000, input_tokens=6000, output_tokens=6000), Estimate(10, 10)
    report = Report()
    report.limits[kind] = told
    desk.ask(limit=limit, report=report)
    at = [slot.at for slot in desk.slots([each] * 20, limit)]
    assert (at[-1] - at[0]) / 19 == pytest.approx(1.0, rel=0.05)
    report.limits[kind] = 60_000.0
    desk.ask(limit=limit, report=report)
    desk.ahead += 60
    at = [slot.at for slot in desk.slots([each] * 20, limit)]
    assert (at[-1] - at[0]) / 19 == pytest.approx(0.1, rel=0.05), "ours is the smaller one now"


@pytest.mark.parametrize("days", [1, 1000])
def test_calls_go_on_after_days_without_any(desk: Desk, days: int) -> None:
    assert desk.ask(ONE).slots
    desk.ahead += days * 86_400.0
    assert desk.ask(ONE).slots


def test_an_outage_of_days_is_probed_every_minute_to_its_end(desk: Desk) -> None:
    desk.ask(report=Report(overloaded=True, why="overloaded"))
    desk.connection.execute("UPDATE model_pace SET level = 5000 WHERE model = %s", (desk.model,))
    desk.ahead += 100
    assert desk.ask(ONE).probe
    seen = desk.ask(report=Report(failed=1, why="overloaded", probe="me", probe_won=False)).seen
    assert 45 < seen.closed_until - seen.now < 75
    desk.ahead += 100
    assert desk.ask(ONE).probe
    assert desk.ask(report=Report(succeeded=True, probe="me", probe_won=True)).seen.level == 0


async def test_a_call_that_is_a_probe_gives_signs_of_life(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_RENEW", 0.05)
    one = await office.pace()
    async with one.turn(request()) as turn:
        turn.failed(Overloaded("529"))
    await until(lambda: one.paused, "the brake is on, and known here")
    office.ahead += 2.0
    async with one.turn(request()) as turn:
        (before,) = office.row("probe_until")
        await until(lambda: office.row("probe_until")[0] > before, "it was prolonged")
        turn.answered(Usage(1, 1), Heard(200))
    await until(lambda: office.row("level")[0] == 0, "the brake is off")


async def test_those_that_wait_longest_are_served_first(office: Office) -> None:
    pace, order = await office.pace(Limit(requests=600)), list[int]()

    async def call(number: int) -> None:
        async with pace.turn(request()) as turn:
            order.append(number)
            turn.answered(Usage(1, 1), Heard(200))

    async with asyncio.TaskGroup() as group:
        for number in range(70):  # more than have a slot within the horizon
            group.create_task(call(number))
    assert order == sorted(order)


async def test_limits_that_the_api_tells_are_known_to_all(office: Office) -> None:
    one = await office.pace(Limit(requests=6000))
    told = {"anthropic-ratelimit-requests-limit": "60", "anthropic-ratelimit-input-tokens-limit": "none"}
    async with one.turn(request()) as turn:
        turn.answered(Usage(1, 1), Heard(200, told))
    await until(lambda: office.row("requests_told, input_told") == (60.0, None), "the row has it")
