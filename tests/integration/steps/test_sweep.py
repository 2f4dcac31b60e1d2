"""Steps whose worker ended in the middle, and to which nobody comes back: settled by the sweep of a running worker."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from farandole import postgres
from farandole.errors import FarandoleError
from farandole.steps.claims import Done, Finish, Granted, Held, OverBudget
from farandole.steps.listing import Effect, effects
from farandole.steps.releasing import release
from farandole.steps.sweeping import Sweep
from tests.integration.steps.conftest import Post
from tests.integration.steps.test_store import Desk, call, claim, desk, money, step

__all__ = ["desk"]


def seen(desk: Desk) -> Effect:
    (effect,) = effects(desk.connection)
    return effect


def swept(desk: Desk, looks: int = 3) -> int:
    """How many steps a worker settles in its first looks."""
    sweep = Sweep("act", 60.0)
    return sum(sweep.run(desk.connection) for _ in range(looks))


@pytest.mark.parametrize("hold", [False, True])
def test_a_step_that_nobody_comes_back_to_is_booked_at_its_upper_bound_and_says_what_happened(
    desk: Desk, hold: bool
) -> None:
    of = step()
    desk.begin(claim(of, "a", hold=hold, money=money(300)))
    desk.end_leases()
    assert swept(desk) == 1
    assert desk.budgets() == {"day": (300, 0), "job/x": (300, 0)}
    assert desk.calls() == [("unknown", 300)]
    assert seen(desk).state == ("held" if hold else "failed")
    assert "nobody knows whether it has happened" in (seen(desk).error or "")
    assert swept(desk) == 0, "there is nothing left to do"


def test_a_live_lease_and_one_that_has_just_ended_are_left_alone_and_so_are_other_agents(desk: Desk) -> None:
    desk.begin(claim(step(), "a"))
    assert swept(desk) == 0, "its owner lives"
    desk.end_leases()
    assert Sweep("other", 60.0).run(desk.connection) == 0
    desk.connection.execute("UPDATE step SET lease_until = clock_timestamp()")
    sweep = Sweep("act", 60.0)
    assert [sweep.run(desk.connection) for _ in range(4)] == [0, 0, 1, 0], "the first look comes after the lease's end"
    assert not sweep.due, "a lease must pass before the next look"


def test_after_an_outage_longer_than_a_lease_its_owner_has_time_to_renew_it(desk: Desk) -> None:
    of, sweep = step(), Sweep("act", 60.0)
    for _ in range(3):
        sweep.run(desk.connection)
    desk.begin(claim(of, "a"))
    desk.connection.execute("UPDATE step SET lease_until = clock_timestamp()")  # and nobody looked for minutes
    assert [sweep.run(desk.connection) for _ in range(2)] == [0, 0]
    desk.store.beat(desk.connection, [(of, "a")])
    assert swept(desk) == 0
    assert seen(desk).live


def test_whoever_comes_later_finds_a_step_that_may_run_under_the_same_key(desk: Desk) -> None:
    of, next_call = step(), money(100)
    desk.begin(claim(of, "a", money=money(200)))
    desk.finish(Finish(of, "a", "leased", trail="[1]"))
    desk.end_leases()
    swept(desk)
    assert desk.begin(claim(of, "b", money=next_call)) == [Granted(0, (1,))]
    assert desk.finish(Finish(of, "a", "done", "1")) == [False], "it is another's now"
    assert desk.finish(Finish(of, "b", "done", "2", call=call(next_call, 30))) == [True]
    assert desk.begin(claim(of, "c")) == [Done("2")]
    assert desk.budgets()["day"] == (30, 0)


def test_a_step_that_is_held_by_the_sweep_is_held_for_whoever_comes_later(desk: Desk) -> None:
    of = step()
    desk.begin(claim(of, "a", hold=True))
    desk.end_leases()
    swept(desk)
    assert isinstance(desk.begin(claim(of, "b", hold=True))[0], Held)


@pytest.mark.parametrize("hold", [False, True])
def test_an_owner_that_seemed_to_be_gone_and_lives_still_says_how_it_ended(desk: Desk, hold: bool) -> None:
    of, of_call = step(), money(300)
    desk.begin(claim(of, "a", hold=hold, money=of_call))
    desk.end_leases()
    swept(desk)
    desk.store.beat(desk.connection, [(of, "a")])
    assert desk.finish(Finish(of, "a", "done", '"late"', call=call(of_call, 20))) == [True]
    assert desk.begin(claim(of, "b", hold=hold)) == [Done('"late"')]
    assert desk.calls() == [("answered", 20)]
    assert desk.budgets() == {"day": (20, 0), "job/x": (20, 0)}


def test_an_owner_that_lives_and_has_failed_says_so_and_may_try_again(desk: Desk) -> None:
    of, of_call = step(), money(300)
    desk.begin(claim(of, "a", money=of_call))
    desk.end_leases()
    swept(desk)
    assert desk.finish(Finish(of, "a", "failed", error="timeout", call=call(of_call, 0, "timeout"))) == [True]
    assert seen(desk).error == "timeout"
    assert desk.budgets()["day"] == (0, 0)
    assert desk.begin(claim(of, "a2")) == [Granted(0)]


def test_two_sweepers_and_an_owner_at_once_book_each_call_once(desk: Desk) -> None:
    of_calls = [(step(), money(5)) for _ in range(40)]
    for of, of_call in of_calls:
        desk.begin(claim(of, f"o{of.event_id}", money=of_call))
    desk.end_leases()

    def sweep(_: int) -> int:
        with postgres.connect(desk.settings) as mine:
            one = Sweep("act", 60.0)
            return sum(one.run(mine) for _ in range(3))

    def wake(_: int) -> list[bool]:
        with postgres.connect(desk.settings) as mine:
            ends = [Finish(of, f"o{of.event_id}", "done", "1", call=call(c, 1)) for of, c in of_calls[::2]]
            return [mine_still for end in ends for mine_still in desk.store.finish(mine, [end])]

    with ThreadPoolExecutor(3) as pool:
        first, second, woken = pool.submit(sweep, 0), pool.submit(sweep, 1), pool.submit(wake, 0)
        assert 20 <= first.result() + second.result() <= 40
        assert woken.result() == [True] * 20
    assert desk.budgets() == {"day": (20 * 1 + 20 * 5, 0), "job/x": (20 * 1 + 20 * 5, 0)}
    assert sorted(desk.calls()) == [("answered", 1)] * 20 + [("unknown", 5)] * 20


def test_money_that_was_reserved_for_nobody_fits_again_where_the_call_cost_less(desk: Desk) -> None:
    """A budget that is full of a dead worker's reservation says so truly: spent, not under way."""
    of, of_call = step(), money(500)
    desk.begin(claim(of, "a", money=of_call))
    desk.end_leases()
    swept(desk)
    (answer,) = desk.begin(claim(step(), "b", money=money(100)))
    assert isinstance(answer, OverBudget)
    desk.finish(Finish(of, "a", "done", "1", call=call(of_call, 100)))
    assert desk.begin(claim(step(), "c", money=money(100))) == [Granted(0)]


@pytest.mark.parametrize("result", [None, '"yes"'])
def test_a_person_may_still_say_what_came_of_a_step_that_was_swept(desk: Desk, result: str | None) -> None:
    of = step()
    desk.begin(claim(of, "a"))
    desk.end_leases()
    swept(desk)
    assert release(desk.connection, seen(desk), result, None)
    assert desk.finish(Finish(of, "a", "done", '"late"')) == [False], "nobody's late word counts any more"
    assert desk.begin(claim(of, "b")) == [Granted(0) if result is None else Done('"yes"', seen(desk).error)]
    with pytest.raises(FarandoleError):
        release(desk.connection, seen(desk), '"other"', None)


def test_what_a_record_that_kills_its_workers_had_begun_is_settled_without_a_redrive(post: Post) -> None:
    """kill -9 by its own record, three times: it is dead-lettered unheard, and nobody comes back to its step."""
    post.submit([("w", "kill-always")])
    assert post.supervise(lambda: post.dead() and post.rows("state") == [("failed",)]) >= 3
    (letter,) = post.dead()
    assert letter.header("farandole.dead.cause") == "killed"
    ((error, owner),) = post.rows("error, owner")
    assert "nobody knows whether it has happened" in error
    assert owner, "should it live after all"
