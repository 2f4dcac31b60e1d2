"""The retry policy: what is tried again, after how long; checked against its bounds for any numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farandole import Agent, Fail, Reject, Retry
from farandole.errors import LONGEST, ConfigurationError
from farandole.retries import RetryPolicy, seconds

durations = st.floats(0.001, 1e9)
chances = st.floats(0, 1)
attempts = st.integers(1, 10_000)


@given(durations, durations, attempts, chances)
def test_a_wait_is_between_half_its_ceiling_and_its_ceiling(
    backoff: float, most: float, attempt: int, chance: float
) -> None:
    policy = RetryPolicy(backoff=backoff, max_backoff=most)
    ceiling = min(most, backoff * 2 ** min(attempt - 1, 60))
    wait = policy.wait(attempt, ValueError(), chance)
    assert math.isfinite(wait)
    assert wait > 0
    assert ceiling / 2 <= wait * (1 + 1e-9)
    assert wait <= ceiling * (1 + 1e-9)


@given(durations, durations, attempts)
def test_ceilings_double_and_never_shrink_and_end_at_the_longest(backoff: float, most: float, attempt: int) -> None:
    policy = RetryPolicy(backoff=backoff, max_backoff=most)
    here, after = policy.ceiling(attempt), policy.ceiling(attempt + 1)
    assert here <= after <= most
    assert after == most or after == pytest.approx(2 * here)
    assert policy.ceiling(1) == min(backoff, most)


@given(st.floats(0, LONGEST), attempts, chances)
def test_a_retry_that_names_its_time_is_kept_exactly(after: float, attempt: int, chance: float) -> None:
    assert RetryPolicy().wait(attempt, Retry(after=after), chance) == after


@given(attempts, chances)
def test_a_retry_without_a_time_waits_like_any_error(attempt: int, chance: float) -> None:
    policy = RetryPolicy()
    assert policy.wait(attempt, Retry(), chance) == policy.wait(attempt, ValueError(), chance)


def test_a_retry_takes_durations_as_people_write_them() -> None:
    assert [Retry(after=after).after for after in ("5s", "2m", "250ms", "0s", 3)] == [5, 120, 0.25, 0, 3]


@pytest.mark.parametrize("after", [-1, -0.001, math.inf, math.nan, 1e12, "soon", "5", "-5s", "9000h"])
def test_a_retry_after_no_time_at_all_is_refused_where_it_is_written(after: float | str) -> None:
    with pytest.raises(ValueError, match=r"expected seconds, from 0 to 31,622,400 \(a year\)"):
        Retry(after=after)


def test_what_is_tried_again_and_what_ends_at_once() -> None:
    every = RetryPolicy()
    assert every.ends_at_once(KeyError()) is None
    some = RetryPolicy(retry_on=(ConnectionError,), reject_on=(LookupError,))
    assert some.ends_at_once(ConnectionResetError()) is None, "a subclass counts"
    assert some.ends_at_once(TimeoutError()) is None, "a timeout is always tried again"
    assert some.ends_at_once(Retry()) is None
    assert some.ends_at_once(KeyError()) == "rejected"
    assert some.ends_at_once(ValueError()) == "not_retried"
    assert RetryPolicy(retry_on=()).ends_at_once(ConnectionResetError()) == "not_retried"
    assert RetryPolicy(reject_on=(OSError,)).ends_at_once(TimeoutError()) == "rejected", "unless it is said"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"attempts": 0}, "agent a: attempts is 0; expected 1 or more"),
        ({"attempts": 1.5}, "agent a: attempts is 1.5; expected 1 or more"),
        ({"backoff": "soon"}, "agent a: backoff is 'soon'; expected a duration such as '250ms', '60s' or '5m'"),
        ({"backoff": math.inf}, "agent a: backoff is inf; expected a duration"),
        ({"backoff": "10m"}, "agent a: backoff is '10m', longer than max_backoff, which is '5m'"),
        ({"max_backoff": 0}, "agent a: max_backoff is 0; expected a duration"),
        ({"in_place": -1}, "agent a: in_place is -1; expected a duration"),
        ({"order": "any"}, "agent a: order is 'any'; expected 'overtake' or 'hold'"),
        ({"retry_on": [ValueError, "x"]}, "agent a: retry_on has 'x'; expected types of exceptions"),
        ({"retry_on": ValueError()}, "agent a: retry_on is ValueError(); expected types of exceptions"),
        (
            {"reject_on": KeyboardInterrupt},
            "agent a: reject_on has .*KeyboardInterrupt.*; expected types of exceptions",
        ),
        ({"reject_on": Retry}, "agent a: reject_on has Retry, whose meaning is fixed"),
        ({"retry_on": [Fail, Reject]}, "agent a: retry_on has Fail, whose meaning is fixed"),
        (
            {"retry_on": ConnectionError, "reject_on": OSError},
            "agent a: retry_on has ConnectionError, which reject_on rejects at once",
        ),
    ],
)
def test_a_wrong_policy_is_named_where_the_agent_is_made(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said.replace("(", r"\(").replace(")", r"\)")):
        Agent("a", **wrong)


def test_a_policy_is_made_of_durations_as_people_write_them() -> None:
    agent = Agent("a", backoff="2s", max_backoff="1h", in_place=0, retry_on=OSError, reject_on=[KeyError], order="hold")
    assert agent.retries == RetryPolicy(4, 2.0, 3600.0, 0.0, (OSError,), (KeyError,), "hold")
    assert Agent("b").retries == RetryPolicy()
    assert seconds("0s", "in_place", zero=True) == 0
