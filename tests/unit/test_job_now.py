"""`ctx.job()` in a handler: given by a test, waited for, and what becomes of an event that the projection does not know."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from farandole import Agent, BlockingContext, Context, Emitted, Event, Job
from farandole.envelope import Emitter, Envelope, begin
from farandole.errors import ProjectionBehind, Stopped, Unreachable
from farandole.handling import Handling
from farandole.ids import new_trace_id
from farandole.job_now import NO_JOB, Jobs
from farandole.outage import Outage
from farandole.outcome import Suspended
from farandole.reading import Goal
from farandole.testing import deliver


class Asked(Event, topic="jobs.asked", stage="asked"):
    text: str


class Seen(Event, topic="jobs.seen", stage="seen"):
    stage: str
    text: str


def looking(**options: object) -> Agent:
    agent = Agent("looks", **options)  # type: ignore[arg-type]

    @agent.handle
    async def look(asked: Asked, ctx: Context) -> Seen:
        job = await ctx.job()
        return Seen(stage=job.stage or "", text=(job.data or {})["asked"]["text"])

    return agent


def looking_plainly(**options: object) -> Agent:
    agent = Agent("looks", **options)  # type: ignore[arg-type]

    @agent.handle
    def look(asked: Asked, ctx: BlockingContext) -> Seen:
        job = ctx.job()
        return Seen(stage=job.stage or "", text=(job.data or {})["asked"]["text"])

    return agent


@pytest.mark.parametrize("agent", [looking(), looking_plainly()], ids=["async", "plain"])
async def test_a_test_gives_the_job(agent: Agent) -> None:
    job = Job(uuid4(), stage="asked", data={"asked": {"text": "earlier"}})
    assert await deliver(agent, Asked(text="hello"), job=job) == Emitted((Seen(stage="asked", text="earlier"),))


@pytest.mark.parametrize("agent", [looking(), looking_plainly()], ids=["async", "plain"])
async def test_a_test_that_gives_none_is_told_how(agent: Agent) -> None:
    with pytest.raises(Stopped, match=r"deliver\(…, job=Job\(…\)\)"):
        await deliver(agent, Asked(text="hello"))


async def test_a_handler_that_holds_up_all_others_may_not_wait_for_the_projection() -> None:
    with pytest.raises(Stopped, match=r"ctx\.job.* not in a handler with inline=True or cpu"):
        await deliver(looking_plainly(inline=True), Asked(text="hello"), job=Job(uuid4()))


class Projection:
    """Never has the event, and then does."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked: list[Goal] = []

    async def until(self, goal: Goal, seconds: float) -> Job:
        self.asked.append(goal)
        if self.failures:
            raise self.failures.pop(0)
        return Job(goal.trace_id, stage="asked", data={"asked": {"text": "folded"}})


async def nothing(_seconds: float) -> None: ...


def handling(jobs: Jobs, agent: Agent) -> Handling:
    return Handling(agent.wiring("jobs"), sleep=nothing, outage=lambda: Outage("x", 60.0), suspends=True, jobs=jobs)


def first() -> Envelope:
    return Envelope(begin(new_trace_id(), Emitter("test"), "jobs.Asked"))


@pytest.mark.parametrize("agent", [looking(attempts=1), looking_plainly(attempts=1)], ids=["async", "plain"])
async def test_the_job_is_waited_for_up_to_the_event_in_hand(agent: Agent) -> None:
    projection, envelope = Projection(), first()
    outcome = await handling(projection, agent).run(Asked(text="x"), envelope)
    assert outcome == Emitted((Seen(stage="asked", text="folded"),))
    raw = envelope.raw
    assert projection.asked == [Goal(UUID(raw["trace_id"]), None, UUID(raw["event_id"]))]


@pytest.mark.parametrize("agent", [looking(attempts=1), looking(attempts=1, retry_on=KeyError)], ids=["any", "some"])
async def test_an_event_the_projection_does_not_know_in_time_is_put_off_without_an_attempt(agent: Agent) -> None:
    outcome = await handling(Projection(TimeoutError()), agent).run(Asked(text="x"), first())
    assert isinstance(outcome, Suspended)
    assert outcome.attempts == 0
    assert 5 <= outcome.after <= 10
    assert "is a projector running" in outcome.error


async def test_a_database_that_is_away_is_an_outage_of_the_worker() -> None:
    projection = Projection(Unreachable("gone"), Unreachable("gone"))
    outcome = await handling(projection, looking(attempts=1)).run(Asked(text="x"), first())
    assert isinstance(outcome, Emitted)
    assert (outcome.attempts, len(projection.asked)) == (1, 3)


def test_the_error_is_a_retry_so_that_every_policy_tries_again() -> None:
    assert ProjectionBehind("x", after=5).counted is False
    assert NO_JOB.job is None
