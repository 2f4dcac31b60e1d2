"""Attempts, their limits and their ends, without Kafka."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest

from farandole import Agent, BlockingContext, Context, Event, Fail, Reject, Retry
from farandole.errors import Stopped, Unreachable
from farandole.handling import MAX_BACKOFF, Handling
from farandole.outage import Outage
from farandole.outcome import DeadLettered, Emitted, Failed
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
    from farandole.envelope import Emitter, Envelope, begin

    envelope = Envelope(begin("01890a5d-ac96-774b-bcce-b302099a8057", Emitter("t"), "jobs.Asked"))
    assert await handling.run(Asked(), envelope) == Emitted([Answered(text="back")])
    assert set(seen) == {1}
    assert len(waited) == 19

    seen.clear()
    over = Handling(wiring, sleep=note, outage=lambda: Outage("agent answer", limit=-1))
    with pytest.raises(Stopped, match=r"agent answer: an outage has lasted .* Postgres does not answer"):
        await over.run(Asked(), envelope)


async def test_backoff_doubles_with_jitter_up_to_its_ceiling_and_retry_after_is_kept() -> None:
    handling = Handling(agent_of(lambda _: None, backoff="1s").wiring("jobs"))
    for attempt in range(1, 40):
        ceiling = min(MAX_BACKOFF, 2.0 ** (attempt - 1))
        assert ceiling / 2 <= handling._backoff(attempt, ValueError()) <= ceiling
    assert handling._backoff(1, Retry(after=171)) == 171
