"""What calls tell about a model, and what a process knows of it, without a database."""

from __future__ import annotations

import pytest

from farandole.models.errors import (
    BadRequest,
    ConnectionFailed,
    ModelError,
    Overloaded,
    RateLimited,
    ServerFailed,
    TimedOut,
    Truncated,
)
from farandole.models.retry_after import retry_after
from farandole.models.values import Heard, Usage
from farandole.pace.clock import DatabaseClock
from farandole.pace.report import Estimate, Report
from farandole.pace.store import Seen
from farandole.pace.view import View


@pytest.mark.parametrize("kind", [ServerFailed, ConnectionFailed, TimedOut])
def test_failures_of_the_api_are_counted_in_a_row(kind: type[ModelError]) -> None:
    report = Report()
    report.failed_with(kind("no"), None)
    report.failed_with(kind("no"), None)
    assert (report.failed, report.succeeded, report.urgent) == (2, False, True)
    report.answered(Heard(200), None)
    report.failed_with(kind("no"), None)
    assert (report.failed, report.succeeded) == (1, True)


@pytest.mark.parametrize("kind", [Truncated, BadRequest])
def test_an_answer_that_helps_nobody_shows_that_the_api_works(kind: type[ModelError]) -> None:
    report = Report(failed=3)
    report.failed_with(kind("no"), "me")
    assert (report.failed, report.succeeded, report.probe_won) == (0, True, True)


def test_the_longest_wait_that_was_told_counts() -> None:
    report = Report()
    report.failed_with(RateLimited("no", after=171.0), None)
    report.failed_with(RateLimited("no", after=3.0), None)
    assert report.close == 171.0


def test_a_429_that_does_not_say_for_how_long_puts_the_brake_on() -> None:
    report = Report()
    report.failed_with(RateLimited("no"), None)
    assert report.overloaded
    assert report.close is None


@pytest.mark.parametrize("error", [ServerFailed("no"), Overloaded("no")])
def test_a_probe_that_fails_has_lost(error: ModelError) -> None:
    report = Report()
    report.failed_with(error, "me")
    assert (report.probe, report.probe_won) == ("me", False)


def test_a_limit_with_nothing_left_closes_until_its_reset() -> None:
    report = Report()
    headers = {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2099-01-01T00:00:00Z",
    }
    report.answered(Heard(200, headers), None)
    assert report.close is not None
    assert report.close > 60


def test_what_is_left_of_a_limit_closes_nothing() -> None:
    report = Report()
    headers = {
        "anthropic-ratelimit-requests-remaining": "1",
        "anthropic-ratelimit-requests-reset": "2099-01-01T00:00:00Z",
    }
    report.answered(Heard(200, headers), None)
    assert report.close is None


def test_tokens_read_from_the_cache_do_not_count() -> None:
    report = Report()
    report.used(Usage(10, 20, cache_read_tokens=5000, cache_write_tokens=30), Estimate(100, 100, 80, 90))
    assert (report.input.used, report.input.owed, report.output.owed) == (40, -40, -70)


def test_when_a_limit_is_full_again_is_counted_from_the_responses_own_date() -> None:
    headers = {
        "date": "Mon, 01 Jan 2001 00:00:00 GMT",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2001-01-01T00:00:42Z",
    }
    assert retry_after(headers) == 42.0


@pytest.mark.parametrize("told", ["0", "-5", "many", "", "nan", "1e9", "9" * 400, "٣"])
def test_what_is_no_limit_is_not_taken_for_one(told: str) -> None:
    report = Report()
    report.answered(Heard(200, {"anthropic-ratelimit-requests-limit": told}), None)
    assert report.limits == {}


class Time:
    """Both clocks, put on by hand."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def test_status_says_why_a_model_is_closed_and_for_how_long() -> None:
    time = Time()
    view = View("claude-haiku-5-5", time, time)
    assert view.paused is None
    view.heard(171.0, "rate limited")
    assert view.paused == "claude-haiku-5-5: rate limited, 171 s more"
    view.written()
    view.saw(Seen(1000.0, 1100.0, 0, "rate limited"))
    time.at = 1040.0
    assert view.paused == "claude-haiku-5-5: rate limited, 60 s more"
    time.at = 1101.0
    assert view.paused is None
    view.saw(Seen(1101.0, 1100.0, 2, "overloaded"))
    assert view.paused == "claude-haiku-5-5: overloaded, waiting for a probe"


def test_a_brake_that_nobody_looked_at_again_is_not_shown() -> None:
    time = Time()
    view = View("m", time, time)
    view.saw(Seen(1000.0, 900.0, 1, "overloaded"))
    assert view.paused == "m: overloaded, waiting for a probe"
    time.at += 10
    assert view.paused is None


def test_the_log_tells_once_that_a_model_closes_and_opens(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "farandole.pace")
    time = Time()
    view = View("m", time, time)
    for _ in range(3):
        view.saw(Seen(1000.0, 1010.0, 0, "rate limited"))
    time.at = 1011.0
    for _ in range(3):
        view.saw(Seen(1011.0, 1010.0))
    assert caplog.messages == ["closed m: rate limited, 10 s more", "open m"]


def test_a_view_that_is_older_than_a_second_is_stale() -> None:
    time = Time()
    view = View("m", time, time)
    assert view.stale
    view.saw(Seen(1000.0))
    assert not view.stale
    time.at += 1.1
    assert view.stale


def test_the_best_answer_tells_the_databases_clock() -> None:
    time = Time()
    clock = DatabaseClock(time)
    time.at = 1000.02
    clock.heard(1000.0, 5000.01)
    assert clock.now() == pytest.approx(5000.02)
    time.at = 1003.02
    clock.heard(1001.02, 5001.5)  # took two seconds: worth less
    assert clock.now() == pytest.approx(5003.02)


def test_a_clock_that_was_set_is_noticed() -> None:
    time = Time()
    clock = DatabaseClock(time)
    clock.heard(1000.0, 5000.0)
    time.at = 1001.0
    clock.heard(1000.99, 5172.0)
    assert clock.now() == pytest.approx(5172.005)
