"""Pages of jobs: filtered and searched, those that moved last first."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from farandole import reading
from farandole.errors import ExitCode, FarandoleError
from farandole.postgres import AsyncConnection, Connection
from farandole.reading import Job

#: Jobs whose payloads are searched in a statement, and by one call, where there is no index.
_CHUNK, MOST = 2_000, 10_000

#: Seconds. No other chunk is begun after these.
_PATIENCE = 5.0

#: How a job can stand.
STATUSES = ("running", "waiting", "blocked", "done", "failed")

_START = datetime(1970, 1, 1, tzinfo=UTC)

#: A statement's name and parameters out, its rows in.
_Talk = Generator[tuple[str, dict[str, Any]], list[dict[str, Any]], "Page"]


@dataclass(frozen=True, slots=True)
class Page:
    """Some jobs, and where the next ones are."""

    jobs: list[Job]
    next: str | None  #: give it as `after`; None: there is nothing behind
    looked: int | None = (
        None  #: jobs that were looked through, where a search without an index has stopped before the end
    )


@dataclass(frozen=True, slots=True)
class Filters:
    """Which jobs. The times are about their last event; `search` is a web search over payloads."""

    stage: str | None = None
    status: str | None = None
    older_than: datetime | None = None
    newer_than: datetime | None = None
    search: str | None = None


def page(connection: Connection[Any], filters: Filters, *, after: str | None = None, limit: int = 100) -> Page:
    """At most `limit` jobs behind the cursor `after`.

    Jobs that move meanwhile come to the front: they may be missed by later pages, and no job is on two, unless it moves
    between. Raises FarandoleError for what is no cursor, no status, or a limit below one.
    """
    talk = _page(filters, after, limit)
    asked = next(talk)
    while True:
        rows = reading.rows(connection, *asked)
        try:
            asked = talk.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


async def page_async(
    connection: AsyncConnection[Any], filters: Filters, *, after: str | None = None, limit: int = 100
) -> Page:
    """`page`, for asyncio."""
    talk = _page(filters, after, limit)
    asked = next(talk)
    while True:
        rows = await reading.rows_async(connection, *asked)
        try:
            asked = talk.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def cursor(job: Job) -> str:
    """Stands for the place behind this job in the list.

    >>> cursor(Job(UUID(int=7), updated_at=_START + timedelta(seconds=1)))
    '1000000.00000000000000000000000000000007'
    """
    return f"{(job.updated_at - _START) // timedelta(microseconds=1)}.{job.trace_id.hex}"


def _place(after: str | None) -> dict[str, Any]:
    if after is None:
        return {"after_at": None, "after_id": None}
    match = re.fullmatch(r"(-?\d{1,18})\.([0-9a-f]{32})", after)
    try:
        at = _START + timedelta(microseconds=int(match[1])) if match else None
    except OverflowError:
        at = None
    if match is None or at is None:
        raise FarandoleError(
            f"{after!r} is no cursor; expected one that an earlier page has given, such as "
            "1767225600000000.019b7780c00074aa8000a1b2c3d4e5f6",
            ExitCode.USAGE,
        )
    return {"after_at": at, "after_id": UUID(match[2])}


def _page(filters: Filters, after: str | None, limit: int) -> _Talk:
    if limit < 1:
        raise FarandoleError(f"limit is {limit}; expected at least 1", ExitCode.USAGE)
    if filters.status not in (None, *STATUSES):
        raise FarandoleError(f"{filters.status!r} is no status; expected {', '.join(STATUSES)}", ExitCode.USAGE)
    given = {name: getattr(filters, name) for name in ("stage", "status", "older_than", "newer_than")}
    given |= {"search": filters.search, **_place(after), "limit": limit}
    if filters.search is None:
        rows = yield "jobs", given
        return _full([Job(**row) for row in rows], limit)
    rows = yield "search_index", {}
    indexed = bool(rows and rows[0]["usable"])
    newest = yield from _walk(given, filters.search, limit, _CHUNK if indexed else MOST)
    if not indexed or newest.looked is None:
        return newest
    # What is common was found among the newest: of what an index has more of, all would be fetched before the first is seen.
    rows = yield "jobs", given | _place(newest.next) | {"limit": limit - len(newest.jobs)}
    return _full([*newest.jobs, *(Job(**row) for row in rows)], limit)


def _full(jobs: list[Job], limit: int) -> Page:
    return Page(jobs, cursor(jobs[-1]) if len(jobs) == limit else None)


def _walk(given: dict[str, Any], search: str, limit: int, most: int) -> _Talk:
    """Without an index: the newest jobs first, chunk by chunk, as far as a person waits."""
    found: list[Job] = []
    looked, began = 0, time.monotonic()
    while True:
        rows = yield "jobs", given | {"search": None, "limit": _CHUNK}
        chunk = [Job(**row) for row in rows]
        rows = yield "jobs_met", {"trace_ids": [job.trace_id for job in chunk], "search": search}
        met = {row["trace_id"] for row in rows}
        found += [job for job in chunk if job.trace_id in met]
        if len(found) >= limit:
            return _full(found[:limit], limit)
        if len(chunk) < _CHUNK:
            return Page(found, None)
        looked += len(chunk)
        given |= _place(cursor(chunk[-1]))
        if looked >= most or time.monotonic() - began > _PATIENCE:
            return Page(found, cursor(chunk[-1]), looked)
