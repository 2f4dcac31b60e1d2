"""Attempts, their limits and their ends, without Kafka."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from farandole import Agent, BlockingContext, Context, Event, Fail, Reject, Retry
from farandole.envelope import Emitter, Envelope, begin
from farandole.errors import Stopped, Unreachable
from farandole.handling import Handling
from farandole.outage import Outage
from farandole.outcome import DeadLettered, Emitted, Failed, Suspended
from farandole.testing import deliver


class Asked(Event, topic="jobs.asked", stage="asked"):
    text: str = ""


class Answered(Event, topic="jobs.answered", stage="answered"):
    text: str


class Unlisted(Event, topic="jobs.unlisted", stage="unlisted"):
    text: str


class Excuse(StrEnum):
    tired = "tired"


def agent_of(act: Callable[[int], Any], **options: Any) -> Agent:
    agent = Agent("answer", **{"attempts": 3, **options})

    @agent.handle
    async def answer(event: Asked, ctx: Context) -> Answered | None:
        return act(ctx.attempt)  # type: ignore[no-any-return]

    return agent


def raising(error: Exception, until: int = 99) -> Callable[[int], Any]:
    def act(attempt: int) -> Any:
        if attempt < until:
            raise error
        return Answered(text="at last")

    return act


async def test_an_output_that_no_schema_holds_fails_in_a_users_test_as_it_would_in_a_worker() -> None:
    wrong = Answered.model_construct(text="half a character: \ud83d")
    outcome = await deliver(agent_of(lambda _: wrong), Asked())
    assert isinstance(outcome, DeadLettered)
    assert (outcome.cause, "Answered.text" in outcome.error) == ("wrong_output", True), outcome.error


async def test_the_outputs_are_compared_by_value() -> None:
    assert await deliver(agent_of(lambda _: Answered(text="a")), Asked()) == Emitted([Answered(text="a")])
    assert await deliver(agent_of(lambda _: None), Asked()) == Emitted()


async def test_each_error_ends_as_its_name_says() -> None:
    assert await deliver(agent_of(raising(Fail("tired", "long day"), 9), reasons=Excuse), Asked()) == Failed("tired")
    assert await deliver(agent_of(raising(Fail(Excuse.tired)), reasons=Excuse), Asked()) == Failed("tired")
    assert await deliver(agent_of(raising(Reject("no"))), Asked()) == DeadLettered("rejected", "")
    assert await deliver(agent_of(raising(KeyError("k"))), Asked()) == DeadLettered("attempts", "")
    unlisted = await deliver(agent_of(raising(Fail("bored")), reasons=Excuse), Asked())
    assert unlisted == DeadLettered("wrong_output", "")
    assert await deliver(agent_of(lambda _: Unlisted(text="x")), Asked()) == DeadLettered("wrong_output", "")
    assert await deliver(agent_of(lambda _: 7), Asked()) == DeadLettered("wrong_output", "")


@pytest.mark.parametrize("error", [ValueError("x"), Retry(), Retry(after=5), ConnectionResetError(), TimeoutError()])
async def test_a_failing_handler_is_tried_again_a_bounded_number_of_times(error: Exception) -> None:
    last_chance = await deliver(agent_of(raising(error, until=3)), Asked())
    assert isinstance(last_chance, Emitted)
    assert last_chance.attempts == 3
    too_late = await deliver(agent_of(raising(error, until=4)), Asked())
    assert isinstance(too_late, DeadLettered)
    assert (too_late.cause, too_late.attempts) == ("attempts", 3)


@pytest.mark.parametrize(
    ("error", "attempts", "said"),
    [
        (Retry(after=0.5), 2, "attempt=1 (again in 0.50 s): Retry"),
        (Retry(after=180), 2, "attempt=1 (put off for 180.00 s): Retry"),
        (ValueError("x"), 1, "attempt=1 (the last: attempts): ValueError"),
    ],
)
async def test_the_log_says_what_follows_a_failed_attempt(
    error: Exception, attempts: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def at_once(seconds: float) -> None: ...

    wiring = agent_of(raising(error), attempts=attempts).wiring("jobs")
    await Handling(wiring, sleep=at_once, suspends=True).run(Asked(), envelope())
    assert said in caplog.text


async def test_an_error_names_the_line_of_the_handler_wherever_the_project_lies(tmp_path: Path) -> None:
    file = tmp_path / "farandole" / "agents" / "answer.py"
    file.parent.mkdir(parents=True)
    file.write_text("import json\n\n\ndef act(attempt):\n    return json.loads('no json')\n")
    scope: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    outcome = await deliver(agent_of(scope["act"], attempts=1), Asked())
    assert isinstance(outcome, DeadLettered)
    assert outcome.error.endswith("(answer.py:5)")


async def test_an_attempt_that_takes_too_long_is_cancelled_and_counts() -> None:
    cancelled = []
    agent = Agent("slow", timeout="20ms", attempts=2)

    @agent.handle
    async def slow(event: Asked) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    outcome = await deliver(agent, Asked())
    assert isinstance(outcome, DeadLettered)
    assert (outcome.attempts, len(cancelled)) == (2, 2)


async def test_a_plain_handler_has_a_thread_of_its_own_which_holds_nothing_up() -> None:
    release, names = threading.Event(), []
    agent = Agent("plain", timeout="50ms", attempts=1)

    @agent.handle
    def plain(event: Asked, ctx: BlockingContext) -> None:
        names.append((threading.current_thread().name, threading.current_thread().daemon))
        release.wait(30)

    outcome = await deliver(agent, Asked())
    release.set()
    assert outcome == DeadLettered("attempts", "")
    assert names == [("handle-plain", True)]


async def test_an_outage_counts_no_attempt_and_in_the_end_stops_the_worker() -> None:
    waited: list[float] = []

    async def note(seconds: float) -> None:
        waited.append(seconds)

    seen: list[int] = []

    def act(attempt: int) -> Any:
        seen.append(attempt)
        if len(seen) < 20:
            raise Unreachable("Postgres does not answer")
        return Answered(text="back")

    wiring = agent_of(act).wiring("jobs")
    handling = Handling(wiring, sleep=note, outage=lambda: Outage("agent answer", limit=60))
    assert await handling.run(Asked(), envelope()) == Emitted([Answered(text="back")])
    assert set(seen) == {1}
    assert len(waited) == 19

    seen.clear()
    over = Handling(wiring, sleep=note, outage=lambda: Outage("agent answer", limit=-1))
    with pytest.raises(Stopped, match=r"agent answer: an outage has lasted .* Postgres does not answer"):
        await over.run(Asked(), envelope())


class Clock:
    """A time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def envelope() -> Envelope:
    return Envelope(begin("01890a5d-ac96-774b-bcce-b302099a8057", Emitter("t"), "jobs.Asked"))


async def test_an_hour_of_outage_ends_without_a_dead_letter_or_a_counted_attempt() -> None:
    clock = Clock()

    def act(attempt: int) -> Any:
        if clock.now < 3600:
            raise Unreachable("Postgres does not answer")
        return Answered(text=f"attempt {attempt}")

    handling = Handling(
        agent_of(act).wiring("jobs"),
        sleep=clock.sleep,
        outage=lambda: Outage("agent answer", limit=7200, clock=clock),
        suspends=True,
    )
    outcomes = [await handling.run(Asked(), envelope()) for _ in range(20)]
    assert outcomes == [Emitted([Answered(text="attempt 1")])] * 20
    assert clock.now >= 3600


async def test_an_outage_that_outlasts_its_limit_stops_the_worker_and_dead_letters_nothing() -> None:
    clock = Clock()
    handling = Handling(
        agent_of(raising(Unreachable("Kafka does not answer"), until=99), reject_on=Exception).wiring("jobs"),
        sleep=clock.sleep,
        outage=lambda: Outage("agent answer", limit=300, clock=clock),
        suspends=True,
    )
    with pytest.raises(Stopped, match=r"an outage has lasted 30\d s"):
        await handling.run(Asked(), envelope())


async def test_a_short_wait_is_made_in_place_and_a_longer_one_is_handed_back() -> None:
    clock = Clock()
    agent = agent_of(raising(ValueError("not yet")), attempts=9, backoff="1s", in_place="3s")
    handling = Handling(agent.wiring("jobs"), sleep=clock.sleep, suspends=True, chance=lambda: 0.0)
    outcome = await handling.run(Asked(), envelope())
    assert isinstance(outcome, Suspended)
    assert (outcome.after, outcome.attempts, outcome.kind) == (4.0, 3, "retry"), "1 s and 2 s were waited for in place"
    assert outcome.error.startswith("ValueError: not yet")
    assert clock.now == 3.0


async def test_attempts_go_on_counting_after_a_wait_and_the_first_error_is_kept() -> None:
    seen: list[int] = []

    def act(attempt: int) -> Any:
        seen.append(attempt)
        raise ValueError(f"attempt {attempt}")

    handling = Handling(agent_of(act, attempts=3, in_place=0).wiring("jobs"), suspends=True)
    first = await handling.run(Asked(), envelope())
    assert isinstance(first, Suspended)
    second = await handling.run(Asked(), envelope(), first.attempts, first.error)
    assert isinstance(second, Suspended)
    third = await handling.run(Asked(), envelope(), second.attempts, second.error)
    assert isinstance(third, DeadLettered)
    assert (third.cause, third.attempts, seen) == ("attempts", 3, [1, 2, 3])
    assert third.error.startswith("ValueError: attempt 1")
    fewer = await handling.run(Asked(), envelope(), 7, "long ago")
    assert fewer == DeadLettered("attempts", "")
    assert seen[-1] == 8, "one that has waited is tried, even where the policy allows fewer attempts by now"


async def test_the_time_a_retry_names_is_handed_back_exactly() -> None:
    agent = agent_of(raising(Retry(after=171.25)), max_backoff="1s")
    handling = Handling(agent.wiring("jobs"), suspends=True, chance=lambda: 1.0)
    outcome = await handling.run(Asked(), envelope())
    assert isinstance(outcome, Suspended)
    assert outcome.after == 171.25


@pytest.mark.parametrize(
    ("error", "cause"),
    [(KeyError("k"), "rejected"), (ValueError("v"), "not_retried"), (ConnectionResetError(), "attempts")],
)
async def test_an_error_ends_as_the_agents_policy_says(error: Exception, cause: str) -> None:
    agent = agent_of(raising(error), retry_on=ConnectionError, reject_on=LookupError)
    outcome = await deliver(agent, Asked())
    assert isinstance(outcome, DeadLettered)
    assert (outcome.cause, outcome.attempts) == (cause, 3 if cause == "attempts" else 1)


async def test_a_timeout_is_tried_again_although_the_policy_does_not_list_it() -> None:
    attempts: list[int] = []
    agent = Agent("slow", timeout="20ms", attempts=2, retry_on=ConnectionError)

    @agent.handle
    async def slow(event: Asked) -> None:
        attempts.append(1)
        await asyncio.sleep(60)

    assert await deliver(agent, Asked()) == DeadLettered("attempts", "")
    assert len(attempts) == 2


class Panic(BaseException):
    """As libraries written in other languages raise it."""


@pytest.mark.parametrize(
    "odd", [Panic("core"), GeneratorExit(), KeyboardInterrupt(), BaseExceptionGroup("g", [Panic()])]
)
async def test_whatever_a_handler_raises_is_an_error_of_its_attempt(odd: BaseException) -> None:
    agent = Agent("answer", attempts=1)

    @agent.handle
    async def answer(event: Asked) -> None:
        raise odd

    outcome = await deliver(agent, Asked())
    assert isinstance(outcome, DeadLettered)
    assert type(odd).__name__ in outcome.error
