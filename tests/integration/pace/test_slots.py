"""The arithmetic of slots: whatever is asked, and when, no window of a minute holds more than the limit; nearly all is used."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from farandole import postgres
from farandole.models.configured import Limit
from farandole.pace.report import Estimate, Report
from farandole.pace.store import HORIZON, Store
from farandole.postgres import Connection
from farandole.settings import Settings
from tests.integration.pace.desk import Desk

#: Seconds that a call may come after its slot.
LATE = 0.3

calls = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.0, 0.5, 7.0, 90.0]),  # seconds before it is asked for
        st.one_of(st.integers(1, 60), st.integers(1, 4000)),  # tokens of input
        st.one_of(st.integers(1, 20), st.integers(1, 1200)),  # and of output
        st.floats(0, LATE),
    ),
    min_size=60,
    max_size=100,
)


def most(arrived: Sequence[tuple[float, float]], window: float = 60.0) -> float:
    """The most that any window held."""
    found = inside = first = 0.0
    arrived = sorted(arrived)
    for at, amount in arrived:
        inside += amount
        while arrived[int(first)][0] <= at - window:
            inside -= arrived[int(first)][1]
            first += 1
        found = max(found, inside)
    return found


@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.reuse, Phase.generate],  # each example is many statements: none is made smaller
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(calls)
def test_no_window_of_a_minute_holds_more_than_the_limit(
    connection: Connection[Any], asked: list[tuple[float, int, int, float]]
) -> None:
    desk = Desk(connection)
    came: list[tuple[float, Estimate]] = []
    for pause, tokens, output, late in asked:
        desk.ahead += pause
        came += [(slot.at + late, slot.taken) for slot in desk.slots([Estimate(tokens, output)])]
    assert len(came) == len(asked)
    assert most([(at, 1) for at, _ in came]) <= 40
    assert most([(at, taken.input_taken) for at, taken in came]) <= 3000
    assert most([(at, taken.output_taken) for at, taken in came]) <= 1000


@pytest.mark.parametrize(
    ("limit", "each"),
    [
        (Limit(requests=50), Estimate(1, 1)),
        (Limit(requests=4000), Estimate(1, 1)),
        (Limit(input_tokens=100_000), Estimate(500, 1)),
        (Limit(output_tokens=80_000), Estimate(1, 400)),
    ],
)
def test_nearly_all_of_a_limit_is_used(connection: Connection[Any], limit: Limit, each: Estimate) -> None:
    slots = Desk(connection).slots([each] * 300, limit)
    minutes = (slots[-1].at - slots[0].at) / 60
    amount = 1 if limit.requests else each.input if limit.input_tokens else each.output
    of = limit.requests or limit.input_tokens or limit.output_tokens or 0
    assert 0.97 < amount * 299 / minutes / of <= 1


def test_slots_of_several_connections_at_once_are_apart(
    connection: Connection[Any], farandole_settings: Settings
) -> None:
    desk, limit = Desk(connection), Limit(requests=6000)
    desk.ask(limit=limit)

    def ask(_: int) -> list[float]:
        with postgres.connect(farandole_settings) as mine:
            other = Store("key")
            answers = [
                other.turns(mine, desk.model, limit, Report(), [Estimate(1, 1)] * 5, owner="o") for _ in range(10)
            ]
            return [slot.at for answer in answers for slot in answer.slots]

    with ThreadPoolExecutor(4) as pool:
        at = sorted(one for found in pool.map(ask, range(4)) for one in found)
    assert len(at) == 200
    assert min(later - earlier for earlier, later in pairwise(at)) > 0.99 * 60 / 6000


def test_a_call_larger_than_the_limit_has_a_minute_for_itself(connection: Connection[Any]) -> None:
    small, large = Estimate(10, 1), Estimate(50_000, 1)
    at = [slot.at for slot in Desk(connection).slots([small, large, small], Limit(input_tokens=3000))]
    assert at[1] - at[0] >= 59
    assert at[2] - at[1] >= 59


def test_what_was_used_in_truth_corrects_what_was_taken(connection: Connection[Any]) -> None:
    desk, limit = Desk(connection), Limit(output_tokens=6000)
    (slot,) = desk.ask(Estimate(10, 4000), limit=limit).slots
    assert not desk.ask(Estimate(10, 4000), limit=limit).slots, "as much as it may use is taken"
    report = Report(calls=1)
    report.output.add(100, 4000, slot.taken.output_taken)
    (slot,) = desk.ask(Estimate(10, 4000), limit=limit, report=report).slots
    assert slot.taken.output_taken < 4000, "and what calls use of it is learned"


def test_no_slot_is_further_ahead_than_the_horizon(connection: Connection[Any]) -> None:
    answer = Desk(connection).ask(*[Estimate(1, 1)] * 100, limit=Limit(requests=60))
    assert 1 < len(answer.slots) < 10
    assert answer.slots[-1].at <= answer.seen.now + HORIZON


def test_after_a_closing_calls_come_gradually(connection: Connection[Any]) -> None:
    desk = Desk(connection)
    report = Report(close=5.0, why="rate limited")
    assert not desk.ask(*[Estimate(1, 1)] * 3, limit=Limit(), report=report).slots
    desk.ahead = 5.1
    at = [slot.at for slot in desk.slots([Estimate(1, 1)] * 200, Limit())]
    seconds = [sum(at[0] + n <= one < at[0] + n + 1 for one in at) for n in range(5)]
    assert seconds[0] <= 2
    assert seconds == sorted(seconds), "more with every second"
