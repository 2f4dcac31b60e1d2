"""jobs, job, journey: what the projection knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farandole.cli.console import note, screen, show, show_json
from farandole.cli.contract import Json
from farandole.errors import ExitCode, FarandoleError
from farandole.project import find_project

if TYPE_CHECKING:
    from uuid import UUID

    from farandole.postgres import Connection
    from farandole.reading import Job
    from farandole.settings import Settings

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

Trace = Annotated[
    str | None, typer.Argument(metavar="TRACE", help="The job's id, or its first characters.", show_default=False)
]
Key = Annotated[str | None, typer.Option("--key", metavar="K", help="The job submitted under this key (without --at).")]
Tenant = Annotated[str | None, typer.Option(help="Of the key.")]


class Status(StrEnum):
    """How a job can stand."""

    RUNNING = "running"
    WAITING = "waiting"
    BLOCKED = "blocked"
    DONE = "done"
    FAILED = "failed"


def jobs(
    stage: Annotated[str | None, typer.Option(help="Only jobs in this stage.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only jobs of this status.")] = None,
    older: Annotated[
        str | None, typer.Option(metavar="AGE", help="Nothing happened for this long, such as 90s, 5m, 2h, 3d.")
    ] = None,
    newer: Annotated[str | None, typer.Option(metavar="AGE", help="Something happened within this long.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many; those that moved last come first.")] = 50,
    json: Json = False,
) -> None:
    """List jobs: where each is and how it stands."""
    from farandole import reading
    from farandole.cli.views import jobs_table

    now = datetime.now(UTC)
    with database() as (connection, _):
        found = reading.jobs(
            connection,
            stage=stage,
            status=status.value if status else None,
            limit=limit,
            older_than=now - age(older, "--older") if older else None,
            newer_than=now - age(newer, "--newer") if newer else None,
        )
    if json:
        show_json([as_row(job) for job in found])
        return
    show(jobs_table(found))
    if len(found) == limit:
        note(f"the first {limit}; --limit shows more", "dim")


def job(trace: Trace = None, key: Key = None, tenant: Tenant = None, json: Json = False) -> None:
    """Show one job: where it is, and what each stage said last."""
    from farandole import parked, reading
    from farandole.cli.parked_view import as_row as parked_row
    from farandole.cli.views import job_panel

    with database() as (connection, settings):
        found = find(connection, settings, trace, key, tenant)
        stages = [row.stage for row in reading.journey(connection, found.trace_id)]
        waits = reading.waits(connection, found.trace_id)
        aside = parked.of_job(connection, found.trace_id)
    if json:
        lists = {"waits": [asdict(wait) for wait in waits], "parked_records": [parked_row(one) for one in aside]}
        show_json(asdict(found) | lists)
    else:
        show(job_panel(found, stages, waits, aside))


def journey(trace: Trace = None, key: Key = None, tenant: Tenant = None, json: Json = False) -> None:
    """Show a job's journey: each event, who emitted it, how long it took and how many attempts it needed."""
    from farandole import parked, reading
    from farandole.cli.views import timeline

    with database() as (connection, settings):
        found = find(connection, settings, trace, key, tenant)
        rows = reading.journey(connection, found.trace_id)
        waits = reading.waits(connection, found.trace_id)
        aside = parked.of_job(connection, found.trace_id)
    if json:
        show_json([asdict(row) for row in rows])
    else:
        show(timeline(found, rows, screen().width, waits, aside))


@contextmanager
def database() -> Iterator[tuple[Connection[Any], Settings]]:
    """A connection to the projection, and the settings of the project around."""
    from farandole import postgres
    from farandole.settings import load_settings

    project = find_project()
    settings = load_settings(project)
    with postgres.connect(settings, application="farandole jobs") as connection:
        yield connection, settings


def find(
    connection: Connection[Any], settings: Settings, trace: str | None, key: str | None, tenant: str | None
) -> Job:
    """The job that was asked for, by its id, the beginning of its id, or its key."""
    from farandole import ids, reading

    if (trace is None) == (key is None):
        raise FarandoleError("which job? give its id, or --key with the key it was submitted under", ExitCode.USAGE)
    if key is not None:
        trace = ids.trace_id_of_key(settings.flow, key, tenant=tenant)
        found = reading.job(connection, trace)
        if found is None:
            raise FarandoleError(
                f"no job of key {key!r} (it would be {trace}); if it was submitted with --at, give its id",
                ExitCode.NOT_FOUND,
            )
        return found
    trace = (trace or "").lower()
    if not ids.is_id(trace):
        return _by_beginning(connection, trace)
    return _known(connection, trace)


def _known(connection: Connection[Any], trace: str | UUID) -> Job:
    from farandole import parked, reading

    found = reading.job(connection, trace)
    if found is None:
        aside = parked.of_job(connection, trace)
        told = f"; of its records {aside[0].place} is parked: `farandole parked list --job {trace}`" if aside else ""
        raise FarandoleError(f"no job {trace}{told}", ExitCode.NOT_FOUND)
    return found


def _by_beginning(connection: Connection[Any], beginning: str) -> Job:
    """The only job whose id begins like this: a range of the primary key, not a scan."""
    from farandole import reading

    if not re.fullmatch(r"[0-9a-f][0-9a-f-]{3,35}", beginning):
        raise FarandoleError(
            f"{beginning!r} is no job id; expected a UUID, or at least its first 4 characters", ExitCode.USAGE
        )
    found = reading.jobs_from(connection, beginning)
    if len(found) != 1:
        what = "no job" if not found else "more than one job"
        raise FarandoleError(f"{what} begins with {beginning}", ExitCode.NOT_FOUND)
    return _known(connection, found[0])


def age(text: str, option: str) -> timedelta:
    """A span such as 5m."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip())
    if not match:
        raise FarandoleError(
            f"{option} is {text!r}; expected a number and s, m, h or d, such as 90s, 5m, 2h, 3d", ExitCode.USAGE
        )
    return timedelta(**{_UNITS[match[2]]: float(match[1])})


def as_row(job: Job) -> dict[str, Any]:
    """For JSON: a job of a list, without the data that was not gathered."""
    return {name: value for name, value in asdict(job).items() if name != "data"}
