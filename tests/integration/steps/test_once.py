"""Steps in real workers: made once whatever crashes, replayed, taken over, or held for a person."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.eventually import eventually
from tests.integration.steps.conftest import Post


@pytest.mark.parametrize("agent", ["poster", "plain"])
def test_a_step_runs_once_and_is_replayed_when_its_handler_fails_later(post: Post, agent: str) -> None:
    words = [(f"w{n}", "fail-later" if n % 2 else "") for n in range(20)]
    with post.agent(agent):
        post.submit(words)
        eventually(lambda: len(post.said()) == 20, "all to be said")
    assert Counter(word for word, _ in post.posted()) == Counter(word for word, _ in words)
    assert sorted(post.said()) == sorted(word for word, _ in words)
    assert post.rows() == [("done", 1)] * 20


def test_a_worker_killed_after_the_record_of_its_effect_posts_nothing_twice(post: Post) -> None:
    post.submit([("w", "kill-later")])
    assert post.supervise(lambda: post.said() == ["w"]) == 1
    assert len(post.posted()) == 1
    assert post.rows() == [("done", 1)]


@pytest.mark.parametrize(("plan", "times"), [("kill-before", 1), ("kill-after", 2)])
def test_a_worker_killed_between_claim_and_record_is_taken_over_with_the_same_key(
    post: Post, plan: str, times: int
) -> None:
    """Case M2: one call more at most, which the callee can collapse by its key."""
    post.submit([("w", plan)])
    assert post.supervise(lambda: post.said() == ["w"]) == 1
    keys = [key for _, key in post.posted()]
    assert len(keys) == times
    assert len(set(keys)) == 1
    assert post.rows() == [("done", 2)]


def test_with_hold_it_is_a_persons_turn_after_such_a_kill(post: Post) -> None:
    post.submit([("w", "kill-after")])
    assert post.supervise(post.dead, TEST_HOLD="1") == 1
    (letter,) = post.dead()
    assert letter.header("farandole.dead.cause") == "held"
    assert len(post.posted()) == 1
    assert post.rows("state") == [("held",)]
    assert post.said() == []


def test_what_a_step_raises_is_tried_again_held_or_final_as_it_says(post: Post) -> None:
    with post.agent():
        post.submit([("again", "refused"), ("broken", "broken"), ("no", "no")])
        eventually(lambda: sorted(post.said()) == ["again", "broken"], "what can be said")
        eventually(lambda: post.log.exists("jobs.failed") and post.log.fields("jobs.failed"), "the failure")
    posts = post.posted()
    assert Counter(word for word, _ in posts) == Counter({"again": 2, "broken": 2, "no": 1})
    assert len({key for word, key in posts}) == 3, "the same key for every try"


def test_with_hold_a_broken_call_is_a_persons_turn_and_a_refused_one_is_not(post: Post) -> None:
    with post.agent(TEST_HOLD="1"):
        post.submit([("again", "refused"), ("broken", "broken")])
        eventually(lambda: post.said() == ["again"] and len(post.dead()) == 1, "both ends")
    assert post.dead()[0].fields["word"] == "broken"
    assert Counter(word for word, _ in post.posted()) == Counter({"again": 2, "broken": 1})


def test_a_lease_is_kept_while_a_call_takes_longer_than_it(post: Post) -> None:
    """The lease is two seconds, the call takes five; a second worker stands by and posts nothing."""
    with post.agent(), post.agent() as second:
        second.said("assigned ")  # before that a rebalance would give the handling up
        post.submit([("w", "slow:5")])
        eventually(lambda: post.said() == ["w"], "it to be said")
    assert len(post.posted()) == 1
    assert post.rows() == [("done", 1)]


def test_an_inline_handler_that_wants_a_step_stops_its_agent_and_dead_letters_nothing(post: Post) -> None:
    with post.agent("hasty") as command:
        post.submit([("w", "")])
        eventually(lambda: command.process.poll() is not None, "it to stop")
        assert command.process.returncode == 7
        assert "inline=True" in command.output()
        assert "Traceback" not in command.output()
    assert post.dead("hasty") == []
