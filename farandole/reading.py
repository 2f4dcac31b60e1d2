"""Reads jobs and their journeys from the projection; what `Client` and the command line show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from farandole.postgres import AsyncConnection, Connection, dict_row, psycopg, script, texts

SQL = {name: script(text) for name, text in texts(__file__).items()}

#: Before the first migration, or the first start of a projector, nothing was folded: that is no error to a reader.
_NOTHING_YET = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)


#: A prepared plan of these may be from when the tables were empty: it would read all of a table for one job.
_PLANNED_ANEW = ("reached",)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Job:
    """Where a job stands. `data` is the latest payload of each stage; None in a list of jobs.

    The defaults are those of a job that has just begun, for tests of handlers.
    """

    trace_id: UUID
    tenant: str | None = None
    stage: str | None = None
    status: str = "running"  #: running, waiting, blocked, done or failed
    data: dict[str, Any] | None = None
    attempts: int = 1
    run: int = 0
    hop: int = 0
    events: int = 1
    dead_letters: int = 0
    conflicts: int = 0  #: records that brought another payload under an id already taken
    parked: int = 0  #: records that could not be folded and seem to belong here
    created_at: datetime = field(default_factory=_now)
    updated_at: datetime = field(default_factory=_now)
    calls: int = 0  #: of models, failed ones included
    tokens: int = 0  #: of all kinds, in and out
    cost_micro_dollars: int = 0  #: of the calls whose price is known


@dataclass(frozen=True, slots=True)
class JourneyRow:
    """One event of a job's journey."""

    event_id: UUID
    causation_id: UUID | None
    type: str  #: full Avro name
    stage: str | None
    outcome: str | None  #: done, failed, blocked or None
    body: dict[str, Any] | None
    occurred_at: datetime
    took: timedelta | None  #: waiting and working since the cause happened
    waited: timedelta | None  #: until its agent claimed the cause; None where claims are off
    worked: timedelta | None  #: from the claim to this event: its batch, its lane, its handler, all attempts
    since_start: timedelta
    emitted_by: str
    run: int
    hop: int
    attempt: int
    part: int | None
    parts: int | None
    topic: str  #: without the namespace
    partition: int
    offset: int
    logged_at: datetime  #: Kafka's timestamp
    sanitised: bool  #: the body shows something in place of what jsonb cannot hold


@dataclass(frozen=True, slots=True)
class Wait:
    """A handling that was put off. `due` is None while it stands behind an earlier event of its key."""

    agent: str
    event_id: UUID
    run: int
    kind: str  #: retry, behind, or budget
    due: datetime | None
    attempts: int  #: made so far
    error: str  #: of the first one
    created_at: datetime
    woken_at: datetime | None  #: it was due, and is about to be handled


@dataclass(frozen=True, slots=True)
class Goal:
    """What somebody waits for: that an event is folded, else that the journey has a stage, else that the job has ended or
    is blocked."""

    trace_id: UUID
    stage: str | None = None
    event_id: UUID | None = None


def job(connection: Connection[Any], trace_id: str | UUID) -> Job | None:
    """The job, or None when no event of it was folded yet."""
    return next((Job(**row) for row in rows(connection, "job", {"trace_ids": [str(trace_id)]})), None)


def journey(connection: Connection[Any], trace_id: str | UUID) -> list[JourneyRow]:
    """All events of the job, causes before their effects; [] when none was folded yet."""
    return [JourneyRow(**row) for row in rows(connection, "journey", {"trace_id": str(trace_id)})]


def waits(connection: Connection[Any], trace_id: str | UUID) -> list[Wait]:
    """What the job waits for, the next to be due first."""
    return [Wait(**row) for row in rows(connection, "waits", {"trace_id": str(trace_id)})]


def suspended(connection: Connection[Any]) -> dict[str, str]:
    """The projections that stand still, with the error that suspended each."""
    return {row["name"]: row["error"] for row in rows(connection, "suspended", {})}


def jobs_from(connection: Connection[Any], beginning: str, limit: int = 2) -> list[UUID]:
    """Ids of at most `limit` jobs that begin with `beginning`, as people type them."""
    low, high = (f"{beginning.replace('-', ''):{fill}<32}" for fill in "0f")
    return [row["trace_id"] for row in rows(connection, "jobs_from", {"low": low, "high": high, "limit": limit})]


def standing(connection: Connection[Any], trace_ids: Sequence[UUID]) -> dict[tuple[str | None, str], int]:
    """How many of these jobs are in each (stage, status); jobs that were not folded yet are not counted."""
    found = rows(connection, "standing", {"trace_ids": list(trace_ids)})
    return {(row["stage"], row["status"]): row["count"] for row in found}


def troubles(connection: Connection[Any]) -> dict[str, int]:
    """How many records were parked, partitions stand still at a gap, conflicts were seen, and jobs are blocked."""
    return next(iter(rows(connection, "troubles", {})), {})


async def job_async(connection: AsyncConnection[Any], trace_id: str | UUID) -> Job | None:
    """`job`, for asyncio."""
    return next((Job(**row) for row in await rows_async(connection, "job", {"trace_ids": [str(trace_id)]})), None)


async def reached_async(connection: AsyncConnection[Any], goals: Sequence[Goal]) -> list[tuple[bool, Job | None]]:
    """Of each goal, in their order, whether it is reached, and the job if it is."""
    columns = {name: [getattr(goal, name) for goal in goals] for name in ("trace_id", "stage", "event_id")}
    given = {f"{name}s": column for name, column in columns.items()}
    reached = {row["n"] - 1 for row in await rows_async(connection, "reached", given)}
    if not reached:
        return [(False, None)] * len(goals)
    wanted = {"trace_ids": sorted({goals[n].trace_id for n in reached})}
    found = {row["trace_id"]: Job(**row) for row in await rows_async(connection, "job", wanted)}
    return [(n in reached, found.get(goal.trace_id) if n in reached else None) for n, goal in enumerate(goals)]


async def journey_async(connection: AsyncConnection[Any], trace_id: str | UUID) -> list[JourneyRow]:
    """`journey`, for asyncio."""
    return [JourneyRow(**row) for row in await rows_async(connection, "journey", {"trace_id": str(trace_id)})]


def rows(connection: Connection[Any], query: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a query by the name of its file; [] before anything was ever folded."""
    try:
        with connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(SQL[query], given).fetchall()
    except _NOTHING_YET:
        return []


async def rows_async(connection: AsyncConnection[Any], query: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    """`rows`, for asyncio."""
    try:
        async with connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(SQL[query], given, prepare=False if query in _PLANNED_ANEW else None)
            return await cursor.fetchall()
    except _NOTHING_YET:
        return []
