"""`ctx.job()`: the job as the projection knows it, at least up to the event in hand."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from farandole.attempt import AttemptTime
from farandole.envelope import Envelope
from farandole.errors import ConfigurationError, ProjectionBehind
from farandole.reading import Goal, Job

#: Seconds. The handling is put off for this to twice this: those that gave up together do not come back together.
_LATER = 5.0


class Jobs(Protocol):
    """Who waits for jobs; `farandole.lookout.Lookout` is the one for production."""

    async def until(self, goal: Goal, seconds: float) -> Job | None: ...


@dataclass(frozen=True, slots=True)
class Given:
    """The job that a test gives; None: it gave none."""

    job: Job | None

    async def until(self, goal: Goal, seconds: float) -> Job:
        if self.job is None:
            raise ConfigurationError(
                "ctx.job() has no projection to ask here; give one, as in `deliver(…, job=Job(…))`"
            )
        return self.job


#: Where there is no projection.
NO_JOB = Given(None)


@dataclass(frozen=True, slots=True)
class JobNow:
    """Made for each attempt, whose `time` stands still while the projection is waited for."""

    jobs: Jobs
    envelope: Envelope
    time: AttemptTime

    async def read(self, seconds: float) -> Job:
        """The job. Raises ProjectionBehind when the event is not folded within `seconds`, Unreachable without a database."""
        raw = self.envelope.raw
        goal = Goal(UUID(raw["trace_id"]), event_id=UUID(raw["event_id"]))
        with self.time.stopped():
            try:
                job = await self.jobs.until(goal, seconds)
            except TimeoutError:
                job = None
        if job is None:
            raise ProjectionBehind(
                f"the projection did not have event {raw['event_id']} within {seconds:g} s: is a projector running, and is "
                "its record not parked?",
                after=_LATER * random.uniform(1, 2),
            )
        return job
