"""Steps that a person takes from their workers: what was reserved for a call is booked, and no late word counts."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from farandole.errors import FarandoleError
from farandole.steps import forgetting
from farandole.steps.claims import Done, Finish, Granted
from farandole.steps.listing import Effect, effects
from farandole.steps.releasing import release
from tests.integration.steps.test_store import Desk, call, claim, desk, money, step

__all__ = ["desk"]


def seen(desk: Desk) -> Effect:
    (effect,) = effects(desk.connection)
    return effect


@pytest.mark.parametrize("result", [None, '"yes"'])
def test_a_release_books_the_call_that_nobody_heard_the_end_of(desk: Desk, result: str | None) -> None:
    of, of_call = step(), money(300)
    desk.begin(claim(of, "a", money=of_call))
    desk.end_leases()
    assert release(desk.connection, seen(desk), result, None)
    assert desk.budgets() == {"day": (300, 0), "job/x": (300, 0)}
    assert desk.calls() == [("unknown", 300)]
    assert desk.finish(Finish(of, "a", "done", '"late"', call=call(of_call, 20))) == [False]
    assert desk.calls() == [("answered", 20)], "the late word is right about the money"
    assert desk.budgets() == {"day": (20, 0), "job/x": (20, 0)}
    assert desk.begin(claim(of, "b")) == [Granted(0) if result is None else Done('"yes"', seen(desk).error)]


def test_what_has_changed_since_it_was_shown_is_not_released(desk: Desk) -> None:
    of = step()
    desk.begin(claim(of, "a"))
    desk.end_leases()
    shown = seen(desk)
    desk.begin(claim(of, "b"))
    with pytest.raises(FarandoleError, match="changed meanwhile"):
        release(desk.connection, shown, None, None)
    with pytest.raises(FarandoleError, match="under way"):
        release(desk.connection, seen(desk), None, None)
    desk.end_leases()
    with pytest.raises(FarandoleError, match="changed meanwhile"):
        release(desk.connection, shown, None, None)
    assert seen(desk).owner == "b"


def test_forgetting_books_the_call_raises_the_generation_once_and_spares_letters_that_are_in_hand(desk: Desk) -> None:
    lost, busy, of_call = step("first"), step("first"), money(300)
    desk.begin(claim(lost, "a", money=of_call))
    desk.finish(Finish(lost, "a", "leased", trail="[1]", call=call(of_call, 20)))
    desk.begin(claim(lost, "a", money=money(300)))
    desk.end_leases()
    desk.begin(claim(busy, "b"))
    letters = [letter(desk, one.event_id) for one in (lost, busy)]
    for _ in range(2):
        held = forgetting.forget(desk.connection, letters, ["first"])
        assert list(held) == [letters[1]]
        assert "is under way" in held[letters[1]]
    assert desk.budgets() == {"day": (320, 0), "job/x": (320, 0)}
    states = {str(one.event_id): (one.state, one.generation) for one in effects(desk.connection)}
    assert states == {lost.event_id: ("forgotten", 1), busy.event_id: ("leased", 0)}
    assert desk.begin(claim(lost, "c", run=1)) == [Granted(1)], "no reply of the first generation is met again"


def letter(desk: Desk, event_id: str) -> UUID:
    """Word of a dead letter, as the projection has it."""
    made = uuid4()
    desk.connection.execute(
        """INSERT INTO event_log (event_id, trace_id, causation_id, type, outcome, emitted_by, run, hop, attempt, occurred_at,
             topic, partition, "offset", logged_at, value, body, sanitised, content_hash)
           VALUES (%s, %s, %s, 'jobs.JobDeadLettered', 'blocked', 'act', 0, 1, 1, now(), 'jobs.dead_lettered', 0, 0, now(), '',
             '{"agent": "act"}', false, 0)""",
        [made, event_id, event_id],
    )
    return made
