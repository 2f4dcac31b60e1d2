"""Models behind agents, on a fake API over HTTP: each call once, recorded, priced and kept within its budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from farandole import postgres
from farandole.testing.messages import (
    Answer,
    Cut,
    FakeMessages,
    Garbage,
    MidStream,
    Slow,
    bad_request,
    no_credit,
    overloaded,
    rate_limited,
    refusal,
    server_error,
    truncated,
)
from tests.commands import Command
from tests.eventually import eventually
from tests.integration.steps.conftest import Post

HAIKU, SONNET = "claude-haiku-5-5", "claude-sonnet-5-5"
GOOD = Answer({"sound": "hard", "place": 7})

#: Of genai-prices: dollars for a million tokens, input, output, read from the cache, written to it.
PRICES = {HAIKU: (0.1, 0.5, 0.01, 0.125), SONNET: (2.0, 10.0, 0.1, 2.5)}


class Court(Post):
    """The agent `judge` and the fake API that it asks."""

    fake: FakeMessages

    def judging(self, *options: str, ready: bool = True, **more: str) -> AbstractContextManager[Command]:
        names = json.dumps({"cheap": HAIKU, "dear": SONNET})
        more = {
            "ANTHROPIC_API_KEY": "test",
            "ANTHROPIC_BASE_URL": self.fake.url,
            "FARANDOLE_MODELS": names,
            "TEST_OPTIONS": " ".join(options),
            **more,
        }
        return self.agent("judge", ready, **more)

    def usage(self, columns: str = "model, outcome") -> list[tuple[Any, ...]]:
        with postgres.connect(self.settings) as connection:
            return connection.execute(f"SELECT {columns} FROM usage ORDER BY at, call_id").fetchall()

    def failed(self) -> list[dict[str, Any]]:
        return self.log.fields("jobs.failed") if self.log.exists("jobs.failed") else []


@pytest.fixture
def court(post: Post) -> Iterator[Court]:
    with FakeMessages() as fake:
        court = Court(post.settings, post.folder)
        court.fake = fake
        yield court


def test_a_model_decides_once_and_its_call_is_priced(court: Court) -> None:
    court.fake.script([GOOD])
    with court.judging():
        court.submit([("w", "")])
        eventually(lambda: court.said() == [f"w hard {HAIKU}"], "the verdict")
    (call,) = court.fake.calls
    assert call.key.startswith("fd-")
    assert "w" in call.body["messages"][0]["content"]
    assert call.body["output_config"]["format"]["type"] == "json_schema"
    tokens = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, micro_dollars, stop_reason"
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    assert court.usage(tokens) == [(*(call.usage[name] for name in names), court.fake.cost(PRICES), "end_turn")]


@pytest.mark.parametrize("stream", [(), ("stream",)])
def test_a_server_that_always_fails_gets_exactly_the_attempts(court: Court, stream: tuple[str, ...]) -> None:
    """Case M1: one layer retries."""
    court.fake.rule(lambda body: server_error())
    with court.judging(*stream):
        court.submit([("w", "")])
        eventually(lambda: court.dead("judge"), "the dead letter")
    assert court.fake.count == 3
    assert court.dead("judge")[0].header("farandole.dead.cause") == "attempts"
    assert court.usage() == [(HAIKU, "server_error")] * 3


def test_an_answer_is_replayed_after_a_kill_and_not_asked_for_again(court: Court) -> None:
    court.fake.script([GOOD])
    court.submit([("w", "kill-later")])
    with court.judging(ready=False) as command:
        eventually(lambda: command.process.poll() is not None, "the kill")
    with court.judging():
        eventually(lambda: court.said() == [f"w hard {HAIKU}"], "the verdict")
    assert court.fake.count == 1


def test_a_worker_killed_while_the_model_thinks_is_taken_over_and_its_call_is_booked(court: Court) -> None:
    """Case M2: one call more, with the same key."""
    court.fake.script([Slow(30, GOOD), GOOD])
    court.submit([("w", "")])
    with court.judging(ready=False) as command:
        eventually(lambda: court.fake.count == 1, "the call")
        command.kill()
    with court.judging():
        eventually(lambda: court.said() == [f"w hard {HAIKU}"], "the verdict")
    assert court.fake.count == 2
    assert len({call.key for call in court.fake.calls}) == 1
    assert sorted(court.usage()) == [(HAIKU, "answered"), (HAIKU, "unknown")]


@pytest.mark.parametrize(
    ("first", "outcome"),
    [
        (overloaded(), "overloaded"),
        (rate_limited(0.05), "rate_limited"),
        (Cut("body"), "cut"),
        (Garbage(), "server_error"),
        (Garbage(200, "{}", "application/json"), "server_error"),
    ],
)
def test_what_may_pass_is_tried_again(court: Court, first: Any, outcome: str) -> None:
    court.fake.script([first, GOOD])
    with court.judging():
        court.submit([("w", "")])
        eventually(lambda: court.said() == [f"w hard {HAIKU}"], "the verdict")
    assert court.usage() == [(HAIKU, outcome), (HAIKU, "answered")]


def test_a_stream_that_breaks_off_or_ends_with_an_error_is_no_answer(court: Court) -> None:
    court.fake.script([Cut("body"), MidStream("overloaded_error", 5), GOOD])
    with court.judging("stream"):
        court.submit([("w", "")])
        eventually(lambda: court.said() == [f"w hard {HAIKU}"], "the verdict")
    assert court.usage() == [(HAIKU, "cut"), (HAIKU, "overloaded"), (HAIKU, "answered")]


def test_a_wrong_answer_is_repaired_once_and_a_cut_one_is_enlarged_once(court: Court) -> None:
    """Cases M4 and P4: half a JSON, a whole one that was cut off, NaN, a value that breaks the agent's rule."""
    court.fake.script([Answer('{"sound": "hard", "place": NaN}'), GOOD])
    court.fake.script([Answer({"sound": "hard", "place": -1}), GOOD])
    court.fake.script([truncated('{"sound": "hard", "place": 7}'), GOOD])
    with court.judging(TEST_CONCURRENCY="1"):
        for number in range(3):
            court.submit([(f"w{number}", "")])
            eventually(lambda n=number: len(court.said()) == n + 1, "the verdict")  # type: ignore[misc]
    calls = court.fake.calls
    assert len(calls) == 6
    assert "place is negative" in json.dumps(calls[3].body["messages"][-1])
    assert [call.body["max_tokens"] for call in calls[4:]] == [200, 400]
    assert court.usage("micro_dollars > 0") == [(True,)] * 6, "the failed ones are charged as well"


def test_what_no_repair_helps_is_dead_lettered_by_its_name(court: Court) -> None:
    court.fake.script(
        [Answer("no idea"), Answer("still none"), refusal("I would rather not"), truncated(), truncated()]
    )
    with court.judging(TEST_CONCURRENCY="1"):
        for number, cause in enumerate(["invalid_output", "refused", "truncated"]):
            court.submit([(f"w{number}", "")])
            eventually(lambda n=number: len(court.dead("judge")) == n + 1, "the dead letter")  # type: ignore[misc]
            assert court.dead("judge")[-1].header("farandole.dead.cause") == cause
    assert court.fake.count == 5


def test_a_fallback_answers_where_the_first_model_does_not_and_rules_where_none_does(court: Court) -> None:
    court.fake.rule(lambda body: refusal() if body["model"] == HAIKU else None)
    court.fake.script([refusal(), GOOD])
    with court.judging("fallback", "rules", TEST_CONCURRENCY="1"):
        court.submit([("a", "")])
        eventually(lambda: court.said() == [f"a hard {SONNET}"], "Sonnet's verdict")
        court.fake.script([refusal(), refusal()])
        court.submit([("b", "")])
        eventually(lambda: "b soft offline rules" in court.said(), "the rules' verdict")
    assert court.usage() == [(HAIKU, "answered"), (SONNET, "answered")] * 2


@pytest.mark.parametrize("behaviour", [no_credit(), bad_request()])
def test_what_no_event_can_help_stops_the_agent_and_dead_letters_nothing(court: Court, behaviour: Any) -> None:
    court.fake.rule(lambda body: behaviour)
    with court.judging("rules") as command:
        court.submit([("w", "")])
        eventually(lambda: command.process.poll() is not None, "it to stop")
        assert command.process.returncode == 7
        assert "Traceback" not in command.output()
        assert behaviour.message in command.output()
    assert court.dead("judge") == []
    assert court.said() == []


def test_a_model_without_a_price_refuses_to_run_under_a_budget(court: Court) -> None:
    """Case M5."""
    names = json.dumps({"cheap": "claude-unheard-of"})
    with court.judging(FARANDOLE_MODELS=names, FARANDOLE_BUDGETS='{"day": 1}') as command:
        court.submit([("w", "")])
        eventually(lambda: command.process.poll() is not None, "it to stop")
        assert "claude-unheard-of has no known price" in command.output()
    assert court.fake.count == 0


def test_what_does_not_fit_a_budget_does_not_start_and_fails_its_job(court: Court) -> None:
    """By the fake server's own prices the agent stays within its budget."""
    court.fake.rule(lambda body: GOOD)
    with court.judging(FARANDOLE_BUDGETS='{"agents": {"judge": 0.001}}'):
        court.submit([(f"w{n}", "") for n in range(60)])
        eventually(lambda: len(court.said()) + len(court.failed()) == 60, "all to end")
    assert 0 < len(court.said()) < 60
    assert {fields["reason"] for fields in court.failed()} == {"over_budget"}
    assert court.fake.count == len(court.said())
    assert court.fake.cost(PRICES) <= 1000
    assert sum(row[0] for row in court.usage("micro_dollars")) == court.fake.cost(PRICES)


def test_a_job_may_wait_until_its_budget_renews(court: Court) -> None:
    """The budget has room for one call at its upper bound, not for two; a call that never fits would not be waited for."""
    court.fake.rule(lambda body: Slow(5, GOOD))
    with court.judging("wait", FARANDOLE_BUDGETS='{"day": 0.001}'):
        court.submit([("a", ""), ("b", "")])
        with postgres.connect(court.settings) as connection:
            query = "SELECT kind, attempts, due > now() FROM wait"
            eventually(lambda: connection.execute(query).fetchall() == [("budget", 0, True)], "the wait")
        eventually(lambda: court.fake.count, "the call that fits")
    assert court.fake.count == 1


def test_two_workers_with_one_event_call_once(court: Court) -> None:
    """Without claims both handle the event: the step still has one owner."""
    court.fake.rule(lambda body: Slow(1, GOOD))
    with court.judging(FARANDOLE_CLAIMS="false"), court.judging(FARANDOLE_CLAIMS="false"):
        court.submit([(f"w{n}", "") for n in range(20)])
        for record in court.log.read("jobs.heard"):  # the same event again, where the other worker reads
            court.log.write("jobs.heard", [(record.key, record.value)], partition=(record.partition + 1) % 4)
        eventually(lambda: len(court.said()) == 40, "every record to be handled")
    assert court.fake.count == 20
