"""The brake's levels: when it comes on, how long it holds, who may probe, and how it comes off."""

from __future__ import annotations

from typing import Any

import pytest

from farandole.models.configured import Limit
from farandole.pace.report import Estimate, Report
from farandole.pace.store import FAILURES
from farandole.postgres import Connection
from tests.integration.pace.desk import Desk

ONE = Estimate(1, 1)


@pytest.fixture
def desk(connection: Connection[Any]) -> Desk:
    return Desk(connection)


def failures(count: int) -> Report:
    return Report(failed=count, why="failing (server_error)")


def lost() -> Report:
    return Report(failed=1, why="failing (server_error)", probe="me", probe_won=False)


def held(desk: Desk) -> float:
    """Seconds that nobody may call."""
    seen = desk.store.look(desk.connection, desk.model)
    return seen.closed_until - seen.now


def test_it_comes_on_after_failures_in_a_row_and_not_before(desk: Desk) -> None:
    assert desk.ask(ONE, limit=Limit(), report=failures(FAILURES - 1)).slots
    assert desk.ask(limit=Limit(), report=Report(failed=FAILURES - 1, succeeded=True)).seen.level == 0
    answer = desk.ask(ONE, limit=Limit(), report=failures(1))
    assert (answer.seen.level, answer.seen.reason, answer.slots) == (1, "failing (server_error)", [])


def test_each_probe_that_fails_doubles_the_interval_up_to_a_minute(desk: Desk) -> None:
    desk.ask(report=Report(overloaded=True, why="overloaded"))
    for level in range(1, 12):
        interval = min(60, 2 ** (level - 1))
        assert 0.75 * interval < held(desk) < 1.25 * interval
        desk.ahead += 1.25 * interval
        assert desk.ask(ONE).probe
        desk.ask(report=lost())


def test_one_probes_at_a_time_and_one_that_is_never_heard_of_again_makes_room(desk: Desk) -> None:
    desk.ask(report=Report(overloaded=True, why="overloaded"))
    desk.ahead += 2
    assert desk.ask(ONE, ONE, probe_seconds=30).probe
    answer = desk.ask(ONE)
    assert (answer.probe, answer.slots) == (False, [])
    desk.ahead += 31
    assert desk.ask(ONE).probe


def test_only_its_owner_ends_a_probe(desk: Desk) -> None:
    desk.ask(report=Report(overloaded=True, why="overloaded"))
    desk.ahead += 2
    assert desk.ask(ONE).probe
    assert desk.ask(report=Report(succeeded=True, probe="another", probe_won=True)).seen.level == 1
    assert desk.ask(report=Report(succeeded=True)).seen.level == 1, "a call from before the brake"
    assert desk.ask(report=Report(succeeded=True, probe="me", probe_won=True)).seen.level == 0


def test_a_429_during_a_probe_closes_for_as_long_as_it_says(desk: Desk) -> None:
    desk.ask(report=Report(overloaded=True, why="overloaded"))
    desk.ahead += 2
    assert desk.ask(ONE).probe
    desk.ask(report=Report(close=171.0, why="rate limited", probe="me"))
    assert held(desk) > 170
    desk.ahead += 172
    assert desk.ask(ONE).probe, "and then another one is tried"
