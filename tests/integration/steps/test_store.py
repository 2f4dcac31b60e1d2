"""The rows of steps: one owner at a time, taken over when a lease has ended, money reserved and booked to the micro-dollar."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from farandole import migrate, postgres
from farandole.models.values import Usage
from farandole.postgres import Connection
from farandole.settings import Settings
from farandole.steps.claims import (
    Allowance,
    Call,
    Claim,
    Done,
    FailedForGood,
    Finish,
    Granted,
    Held,
    Leased,
    Money,
    OverBudget,
    Step,
)
from farandole.steps.store import Store

#: Two budgets, the day's in effect the larger one.
ALLOWANCES = (Allowance("day", 1000, daily=True), Allowance("job/x", 500, daily=False))


class Desk:
    """A store on a database of its own."""

    def __init__(self, settings: Settings, connection: Connection[Any]) -> None:
        self.settings = settings
        self.connection = connection
        self.store = Store(60.0)

    def begin(self, *claims: Claim) -> list[Any]:
        return list(self.store.begin(self.connection, claims))

    def finish(self, *ends: Finish) -> list[bool]:
        return self.store.finish(self.connection, ends)

    def end_leases(self) -> None:
        self.connection.execute("UPDATE step SET lease_until = now() - interval '1 second'")

    def budgets(self) -> dict[str, tuple[int, int]]:
        """Spent and reserved, by the key without its day."""
        rows = self.connection.execute("SELECT key, spent, reserved FROM budget")
        return {key.split("/2")[0]: (spent, reserved) for key, spent, reserved in rows}

    def calls(self) -> list[tuple[str, int | None]]:
        return list(self.connection.execute("SELECT outcome, micro_dollars FROM usage ORDER BY at, call_id"))


@pytest.fixture
def desk(farandole_settings: Settings) -> Iterator[Desk]:
    migrate.migrate(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield Desk(farandole_settings, connection)


def step(name: str = "mail", event: str | None = None) -> Step:
    event = event or str(uuid4())
    return Step(event, "act", name, event)


def claim(of: Step, owner: str, **more: Any) -> Claim:
    return Claim(of, owner, more.pop("run", 0), **more)


def money(ceiling: int | None = 300) -> Money:
    return Money(str(uuid4()), "m", ceiling, ALLOWANCES)


def call(of: Money, cost: int | None, outcome: str = "answered") -> Call:
    return Call(of.call_id, "m", Usage(1, 2, 3, 4), cost, 5, "end_turn", outcome, "req")


def test_a_step_is_granted_to_one_owner_and_replayed_to_the_next(desk: Desk) -> None:
    of = step()
    assert desk.begin(claim(of, "a")) == [Granted(0)]
    assert desk.begin(claim(of, "a")) == [Granted(0)], "its answer was lost: asked again"
    (other,) = desk.begin(claim(of, "b"))
    assert isinstance(other, Leased)
    assert other.seconds > 0
    assert desk.finish(Finish(of, "a", "done", '"sent"')) == [True]
    assert desk.finish(Finish(of, "a", "done", '"sent"')) == [True], "its answer was lost: written again"
    assert desk.begin(claim(of, "b"), claim(of, "c", run=1)) == [Done('"sent"')] * 2, "a redrive replays as well"


def test_of_many_who_claim_at_once_one_is_granted(desk: Desk) -> None:
    """Two workers given the same event at once: one call."""
    steps = [step(event=str(uuid4())) for _ in range(40)]

    def take(owner: str) -> list[Any]:
        with postgres.connect(desk.settings) as mine:
            return [Store(60.0).begin(mine, [claim(one, f"{owner}{n}")])[0] for n, one in enumerate(steps)]

    with ThreadPoolExecutor(4) as pool:
        answers = list(zip(*pool.map(take, "abcd"), strict=True))
    assert [sum(isinstance(one, Granted) for one in each) for each in answers] == [1] * 40


def test_only_a_lease_that_has_ended_is_taken_over_and_its_first_owner_changes_nothing_any_more(desk: Desk) -> None:
    of = step()
    desk.begin(claim(of, "a"))
    desk.end_leases()
    desk.store.beat(desk.connection, [(of, "a")])
    assert isinstance(desk.begin(claim(of, "b"))[0], Leased), "its owner gave word"
    desk.end_leases()
    assert desk.begin(claim(of, "b")) == [Granted(0)]
    desk.store.beat(desk.connection, [(of, "a")])
    assert desk.finish(Finish(of, "a", "done", "1")) == [False]
    assert desk.finish(Finish(of, "b", "done", "2")) == [True]
    assert desk.begin(claim(of, "c")) == [Done("2")]


def test_with_hold_a_call_of_a_dead_worker_waits_for_a_person(desk: Desk) -> None:
    of = step()
    desk.begin(claim(of, "a", hold=True))
    desk.end_leases()
    for owner in "bc":
        (answer,) = desk.begin(claim(of, owner, hold=True))
        assert isinstance(answer, Held)


def test_a_failure_for_good_is_one_of_its_run_alone(desk: Desk) -> None:
    of = step()
    desk.begin(claim(of, "a"))
    desk.finish(Finish(of, "a", "failed", error="no\0no \ud800", failure="{}", failed_run=0))
    assert desk.begin(claim(of, "b")) == [FailedForGood("{}")]
    assert desk.begin(claim(of, "b", run=1)) == [Granted(0)]


def test_a_failure_that_may_pass_is_tried_again_and_keeps_the_replies_so_far(desk: Desk) -> None:
    of = step()
    desk.begin(claim(of, "a"))
    desk.finish(Finish(of, "a", "failed", error="timeout", trail="[1]"))
    assert desk.begin(claim(of, "b")) == [Granted(0, (1,))]


def test_a_forgotten_step_runs_anew_under_another_key(desk: Desk) -> None:
    of = step()
    desk.begin(claim(of, "a"))
    desk.finish(Finish(of, "a", "done", "1"))
    desk.connection.execute("UPDATE step SET state = 'forgotten', generation = generation + 1")
    (answer,) = desk.begin(claim(of, "b"))
    assert answer == Granted(1)
    assert of.key(1) != of.key(0)


def test_money_is_reserved_with_the_claim_and_what_does_not_fit_does_not_start(desk: Desk) -> None:
    steps, amounts = [step() for _ in range(4)], [money() for _ in range(4)]
    answers = desk.begin(*(claim(of, f"o{n}", money=amounts[n]) for n, of in enumerate(steps)))
    assert answers[0] == Granted(0), "together they do not fit: one by one, the first does"
    assert answers[1:] == [OverBudget("job/x", 500, 300, 300, None)] * 3
    assert desk.budgets() == {"day": (0, 300), "job/x": (0, 300)}
    assert isinstance(desk.begin(claim(steps[0], "o0", money=amounts[0]))[0], Granted)
    assert desk.budgets()["day"] == (0, 300), "reserved once, however often it was asked"
    assert desk.finish(Finish(steps[0], "o0", "done", "1", call=call(amounts[0], 120))) == [True]
    assert desk.budgets() == {"day": (120, 0), "job/x": (120, 0)}
    assert desk.calls() == [("answered", 120)]


def test_a_daily_budget_says_when_it_renews(desk: Desk) -> None:
    (answer,) = desk.begin(claim(step(), "a", money=Money(str(uuid4()), "m", 30, (Allowance("day", 20, daily=True),))))
    assert isinstance(answer, OverBudget)
    assert answer.renews_in is not None
    assert 0 < answer.renews_in <= 86_400


def test_a_replay_needs_no_money(desk: Desk) -> None:
    of, dear = step(), money(10_000)
    desk.begin(claim(of, "a"))
    desk.finish(Finish(of, "a", "done", "1"))
    assert desk.begin(claim(of, "b", money=dear)) == [Done("1")]


def test_the_next_call_of_a_step_is_reserved_anew_and_one_that_was_not_made_costs_nothing(desk: Desk) -> None:
    of, first, second, third = step(), money(200), money(300), money(100)
    desk.begin(claim(of, "a", money=first))
    desk.finish(Finish(of, "a", "leased", trail="[1]", call=call(first, 50)))
    assert desk.begin(claim(of, "a", money=second)) == [Granted(0, (1,))]
    assert desk.budgets()["day"] == (50, 300)
    desk.begin(claim(of, "a", money=third))
    assert desk.budgets()["day"] == (50, 100), "the second was not made: a reply was there"
    desk.finish(Finish(of, "a", "failed", error="cancelled before it was made"))
    assert desk.budgets()["day"] == (50, 0)
    assert desk.calls() == [("answered", 50)]


def test_a_take_over_books_the_lost_call_at_its_upper_bound_until_its_first_owner_tells_better(desk: Desk) -> None:
    of, first, second = step(), money(200), money(100)
    desk.begin(claim(of, "a", money=first))
    desk.end_leases()
    assert desk.begin(claim(of, "b", money=second)) == [Granted(0)]
    assert desk.budgets()["day"] == (200, 100)
    assert desk.calls() == [("unknown", 200)]
    assert desk.finish(Finish(of, "a", "done", "1", call=call(first, 20))) == [False]
    assert desk.budgets() == {"day": (20, 100), "job/x": (20, 100)}
    assert desk.finish(Finish(of, "b", "done", "2", call=call(second, 30))) == [True]
    assert desk.budgets() == {"day": (50, 0), "job/x": (50, 0)}
    assert sorted(desk.calls()) == [("answered", 20), ("answered", 30)]


def test_a_budget_is_never_exceeded_by_many_who_claim_at_once(desk: Desk) -> None:
    """Each may cost 7 of 500: 71 fit, whoever they are; nobody waits in a circle."""

    def spend(owner: str) -> int:
        granted = 0
        with postgres.connect(desk.settings) as mine:
            for batch in range(10):
                of = [claim(step(), f"{owner}.{batch}.{n}", money=money(7)) for n in range(5)]
                granted += sum(isinstance(one, Granted) for one in Store(60.0).begin(mine, of))
        return granted

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, "abcd")) == 71
    assert desk.budgets()["job/x"] == (0, 497)


def test_an_unpriced_model_reserves_nothing_where_there_is_no_budget(desk: Desk) -> None:
    of = Money(str(uuid4()), "m", None)
    wish = claim(step(), "a", money=of)
    assert desk.begin(wish) == [Granted(0)]
    desk.finish(Finish(wish.step, "a", "done", "1", call=call(of, None)))
    assert desk.calls() == [("answered", None)]


@pytest.mark.parametrize("hold", [False, True])
def test_a_call_that_nobody_heard_the_end_of_is_booked_also_where_another_does_not_fit(desk: Desk, hold: bool) -> None:
    """Its job may end for want of money: nobody would come again to book it."""
    of, of_call = step(), money(300)
    desk.begin(claim(of, "a", money=of_call, hold=hold))
    desk.end_leases()
    for owner in "bc":
        (answer,) = desk.begin(claim(of, owner, money=money(300), hold=hold))
        assert isinstance(answer, Held if hold else OverBudget)
        assert desk.budgets() == {"day": (300, 0), "job/x": (300, 0)}
        assert desk.calls() == [("unknown", 300)]
    assert desk.finish(Finish(of, "a", "done", '"late"', call=call(of_call, 20))) == [hold]
    assert desk.budgets() == {"day": (20, 0), "job/x": (20, 0)}


def test_what_was_held_is_done_when_its_worker_wakes_and_says_so(desk: Desk) -> None:
    of = step()
    desk.begin(claim(of, "a", hold=True))
    desk.end_leases()
    assert isinstance(desk.begin(claim(of, "b", hold=True))[0], Held)
    assert desk.finish(Finish(of, "a", "done", '"sent"')) == [True]
    assert desk.begin(claim(of, "b", run=1, hold=True)) == [Done('"sent"')]


def test_two_ends_of_one_step_in_one_batch_give_a_reservation_back_once(desk: Desk) -> None:
    """An attempt that is cancelled while its answer is about to be written."""
    of, amount = step(), money(100)
    desk.begin(claim(of, "a", money=amount))
    done = Finish(of, "a", "done", "1", call=call(amount, 40))
    assert desk.finish(done, Finish(of, "a", "failed", error="cancelled"))[0] is True
    assert desk.budgets() == {"day": (40, 0), "job/x": (40, 0)}
    assert desk.begin(claim(of, "b")) == [Done("1")]


def test_two_claims_of_one_orphan_in_one_batch_book_its_call_once(desk: Desk) -> None:
    of, amount = step(), money(100)
    desk.begin(claim(of, "a", money=amount))
    desk.end_leases()
    first, second = desk.begin(claim(of, "b", money=money(50)), claim(of, "c", money=money(50)))
    assert isinstance(first, Granted)
    assert isinstance(second, Leased)
    assert desk.budgets() == {"day": (100, 50), "job/x": (100, 50)}


def test_an_owner_that_seemed_to_be_gone_may_still_say_that_it_has_happened(desk: Desk) -> None:
    of = step()
    desk.begin(claim(of, "a", hold=True))
    desk.end_leases()
    (held,) = desk.begin(claim(of, "b", hold=True))
    assert isinstance(held, Held)
    assert "nobody knows" in held.error
    assert desk.finish(Finish(of, "a", "failed", error="late")) == [False]
    assert desk.finish(Finish(of, "a", "done", "1")) == [True]
    assert desk.begin(claim(of, "c", hold=True)) == [Done("1")]
