"""Reads how jobs stand, and waits for them; what a `Client` can do besides submitting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from farandole import ids, paging, postgres, reading
from farandole.errors import ExitCode, FarandoleError, Unreachable
from farandole.lookout import Lookout
from farandole.paging import Filters, Page
from farandole.reading import Goal, Job, JourneyRow
from farandole.settings import Settings

T = TypeVar("T")


class WaitTimeout(FarandoleError, TimeoutError):
    """A job did not get where it was expected in time; `job` is what was seen last, None if nothing was."""

    def __init__(self, message: str, job: Job | None) -> None:
        super().__init__(message, ExitCode.TIMEOUT)
        self.job = job


class Reader:
    """Two connections at most, each opened when it is first needed: one for questions, one for waits."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._database: postgres.AsyncConnection[Any] | None = None
        self._reading = asyncio.Lock()
        self._lookout = Lookout(settings, "farandole client")

    async def close(self) -> None:
        """Let go of the database."""
        await self._lookout.close()
        if self._database:
            await self._database.close()
            self._database = None

    async def job(self, trace_id: UUID) -> Job | None:
        """How a job stands as far as it is folded, or None while the projection does not know it.

        >>> async def example(client: Client, trace_id: UUID) -> None:
        ...     if job := await client.job(trace_id):
        ...         print(job.stage, job.status)
        """
        wanted = _id(trace_id)
        return await self._read(lambda connection: reading.job_async(connection, wanted))

    async def journey(self, trace_id: UUID) -> list[JourneyRow]:
        """All events of a job, in order; [] while the projection does not know it."""
        wanted = _id(trace_id)
        return await self._read(lambda connection: reading.journey_async(connection, wanted))

    async def jobs(
        self,
        *,
        stage: str | None = None,
        status: str | None = None,
        older_than: datetime | None = None,
        newer_than: datetime | None = None,
        search: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """At most `limit` jobs, those that moved last first; their `data` is None.

        Args:
            older_than, newer_than: about the last event.
            search: words that one event's payload has, as in a web search: "quoted phrases", or, -without. `farandole
                projector search on` makes an index for it; without one only the newest jobs are looked through, and
                `Page.looked` says how many when there are more.
            after: `Page.next` of the page before.

        >>> async def example(client: Client) -> None:
        ...     page = await client.jobs(status="failed", search="invoice -paid")
        ...     more = await client.jobs(status="failed", search="invoice -paid", after=page.next)
        """
        filters = Filters(stage, status, older_than, newer_than, search)
        return await self._read(lambda connection: paging.page_async(connection, filters, after=after, limit=limit))

    async def wait(self, trace_id: UUID, stage: str | None = None, timeout: float = 30.0) -> Job:  # noqa: ASYNC109  its own deadline names what was seen last
        """The job, once its journey contains `stage`; without one, once it is done, failed or blocked.

        It is told by the database when the job moves, and sits out outages. Any number of waits share one connection. Raises
        WaitTimeout (a TimeoutError) after `timeout` seconds, which names what was seen last; Unreachable when the database
        is away then, or was never there.

        >>> async def example(client: Client, trace_id: UUID) -> None:
        ...     job = await client.wait(trace_id, stage="classified", timeout=10)
        """
        try:
            job = await self._lookout.until(Goal(_id(trace_id), stage), timeout)
        except TimeoutError:
            job = await self.job(trace_id)
            goal = f"reach {stage!r}" if stage else "end"
            seen = (
                f"last seen in stage {job.stage!r}, {job.status}"
                if job
                else "the projection does not know it (is a projector running?)"
            )
            raise WaitTimeout(f"job {trace_id} did not {goal} within {timeout:g} s: {seen}", job) from None
        if job is None:
            raise Unreachable(f"job {trace_id} has left the projection while it was looked at; ask again")
        return job

    async def _read(self, question: Callable[[postgres.AsyncConnection[Any]], Awaitable[T]]) -> T:
        """Ask the database; one connection serves all questions, one after the other."""
        async with self._reading:
            if self._database is None or self._database.closed:
                self._database = await postgres.connect_async(self.settings, application="farandole client")
            try:
                return await question(self._database)
            except postgres.OUTAGES as failure:
                await self._database.close()  # the next question opens another
                if postgres.is_outage(failure):
                    raise Unreachable(f"Postgres does not answer: {failure}") from failure
                raise


def _id(trace_id: UUID) -> UUID:
    if not ids.is_id(str(trace_id).lower()):
        raise FarandoleError(f"{trace_id!r} is no job id; expected a UUID", ExitCode.USAGE)
    return UUID(str(trace_id))
