"""What a partition's deaths prove, without a database."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from farandole.outcome import DeadLettered
from farandole.worker.lifelines import DEATHS, Lifeline, killed

WINDOW = 20

offsets = st.integers(0, 50)
lifelines = st.builds(
    Lifeline,
    owner=st.sampled_from([None, "a", "b"]),
    position=offsets,
    deaths=st.integers(0, 5),
    until=st.none() | offsets,
    suspect=st.none() | offsets,
    alone=st.booleans(),
    kills=st.integers(0, 3),
)


def died(line: Lifeline, times: int = 1) -> Lifeline:
    """After so many owners that committed nothing and died."""
    for life in range(times):
        line = line.taken(f"life {life} of {line.owner}", line.position, WINDOW)
    return line


def test_three_deaths_without_progress_have_the_records_handled_alone() -> None:
    line = Lifeline("first", 7)
    assert [died(line, times).until for times in range(DEATHS + 1)] == [None, None, None, 7 + WINDOW]


def test_owners_that_let_go_or_got_on_prove_nothing() -> None:
    line = died(Lifeline("first", 7), DEATHS - 1)
    assert replace(line, owner=None).taken("next", 7, WINDOW).deaths == DEATHS - 1, "let go"
    assert line.taken(line.owner or "", 7, WINDOW).deaths == DEATHS - 1, "taken twice"
    assert line.taken("next", 8, WINDOW).deaths == 0, "progress"


def test_progress_does_not_end_the_search_before_it_has_seen_all_that_may_have_been_in_hand() -> None:
    line = died(Lifeline("first", 7), DEATHS)
    for position in (8, 7 + WINDOW - 1):
        assert line.taken("next", position, WINDOW).until == 7 + WINDOW
    assert line.taken("next", 7 + WINDOW, WINDOW).until is None


def test_a_kill_is_a_death_while_that_very_record_was_alone() -> None:
    line = replace(died(Lifeline("first", 7), DEATHS), suspect=9, alone=True, kills=1)
    assert line.taken("next", 9, WINDOW).kills == 2, "also when records before it were committed meanwhile"
    assert line.taken("next", 7, WINDOW).kills == 2
    assert replace(line, alone=False).taken("next", 9, WINDOW).kills == 1, "it died before or after"
    assert replace(line, owner=None).taken("next", 9, WINDOW).kills == 1, "it let go"
    assert line.taken("next", 10, WINDOW).suspect is None, "it was committed"
    assert line.taken("next", 10, WINDOW).kills == 0


def test_a_position_that_was_set_back_begins_anew() -> None:
    line = replace(died(Lifeline("first", 7), DEATHS), suspect=9, alone=True, kills=2)
    assert line.taken("next", 3, WINDOW) == Lifeline("next", 3)


@given(lifelines, offsets)
def test_taking_twice_is_taking_once(line: Lifeline, position: int) -> None:
    once = line.taken("new", position, WINDOW)
    assert once.taken("new", position, WINDOW) == once


@given(lifelines, offsets)
def test_a_new_owner_starts_with_nothing_in_hand_and_what_it_looks_for_lies_ahead(
    line: Lifeline, position: int
) -> None:
    taken = line.taken("new", position, WINDOW)
    assert (taken.owner, taken.position, taken.alone) == ("new", position, False)
    assert taken.until is None or taken.until > position
    assert taken.suspect is None or taken.suspect >= position
    assert taken.suspect is not None or taken.kills == 0
    assert taken.deaths <= line.deaths + 1 and taken.kills <= line.kills + 1


def test_the_third_kill_is_a_dead_letter() -> None:
    assert [killed(kills) for kills in range(3)] == [None] * 3
    outcome = killed(3)
    assert outcome == DeadLettered("killed", "", 3)
    assert outcome and outcome.error == "the process ended 3 times while this record was handled alone"
