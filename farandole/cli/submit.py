"""submit: jobs from a file or a pipe."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from farandole.cli.console import STATUS_STYLES, as_json, note, say, screen
from farandole.cli.contract import Json, opened
from farandole.errors import ExitCode, FarandoleError

if TYPE_CHECKING:
    from rich.status import Status

    from farandole.client import Client, Submission
    from farandole.settings import Settings


class Format(StrEnum):
    """What a file may hold; told by its name when not given."""

    JSONL = "jsonl"
    CSV = "csv"
    EML = "eml"
    MBOX = "mbox"


def submit(
    source: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON Lines, CSV, .eml or mbox; - is stdin.")],
    format: Annotated[
        Format | None, typer.Option(help="Default: by the file's name; of stdin JSON Lines.", show_default=False)
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Names the job: submitting a key twice is one job.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="FIELD", help="A time that belongs to the key; give it each time, or never.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Whose jobs they are.")] = None,
    type: Annotated[
        str | None, typer.Option(metavar="NAME", help="The event type; default: the one with ingest=True.")
    ] = None,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Name invalid rows and go on; exit code 1.")
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Until all of them are done, failed or blocked; exit code 1 unless all are done."),
    ] = False,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds that --wait waits.")] = 300,
    json: Json = False,
) -> None:
    """Submit one job a row. Rows go out as they are read: an invalid one stops, after saying how many were sent."""
    from farandole.flow import ingest_event
    from farandole.sources import rows
    from farandole.submissions import submissions

    project, settings = opened()
    skipped: list[FarandoleError] = []
    checked = submissions(
        rows(source, format.value if format else None),
        ingest_event(project, type),
        key=key,
        at=at,
        tenant=tenant,
        skip=skipped.append if skip_invalid else None,
    )
    sent = Sent(keyed=key is not None)
    within = timeout if wait else None
    unfinished = asyncio.run(_submit(settings, checked, sent, live=source == "-", within=within, json=json))
    _conclude(sent, skipped, unfinished, json)


def _conclude(sent: Sent, skipped: list[FarandoleError], unfinished: int, json: bool) -> None:
    """Say what became of the rows; exit code 1 unless all is well."""
    for error in skipped[:20]:
        note(f"skipped {error}", "yellow")
    if not json:
        say(f"{sent.count} submitted" + (f", {len(skipped)} skipped" if skipped else "") + sent.rate())
    if skipped or unfinished:
        raise typer.Exit(ExitCode.FAILED)


class Sent:
    """What the broker has acknowledged so far."""

    def __init__(self, keyed: bool) -> None:
        self.keyed = keyed
        self.count = 0
        self._started = time.monotonic()

    def rate(self) -> str:
        """For people, empty when it says nothing."""
        took = time.monotonic() - self._started
        return f" ({self.count / took:,.0f} a second)" if self.count > 1000 else ""

    def explain(self, error: FarandoleError) -> FarandoleError:
        """The error with what it means for the rows before it."""
        again = (
            "with the same --key a rerun is safe"
            if self.keyed
            else "a rerun would submit them again (--key FIELD makes it safe)"
        )
        tail = f"{self.count} submitted before it; {again}" if self.count else "nothing was submitted"
        return FarandoleError(f"{error}; {tail}", error.exit_code)


async def _submit(
    settings: Settings,
    checked: Iterator[Submission],
    sent: Sent,
    *,
    live: bool,
    within: float | None,
    json: bool,
) -> int:
    """Send everything; with `within` (seconds) wait for the jobs. Returns how many of them are not done."""
    from farandole.client import Client

    trace_ids: list[UUID] = []
    async with Client(settings) as client:
        with screen(sys.stderr).status("submitting") as line:
            try:
                async for trace_id in _acknowledged(client, checked, live):
                    sent.count += 1
                    if within is not None:
                        trace_ids.append(trace_id)
                    elif json:
                        print_line({"trace_id": trace_id})
                    if sent.count % 500 == 0:
                        line.update(f"{sent.count:,} submitted{sent.rate()}")
            except FarandoleError as error:
                raise sent.explain(error) from error
            if within is None:
                return 0
            return await _wait(client, trace_ids, within, line, json)


async def _acknowledged(client: Client, checked: Iterator[Submission], live: bool) -> AsyncIterator[UUID]:
    """The jobs, each once the broker has it. Of a pipe each handful goes out as soon as the pipe is quiet."""
    from farandole.cli.live import handfuls

    if not live:
        async for trace_id in client.submit_many(checked):
            yield trace_id
        return
    async for rows in handfuls(checked):
        async for trace_id in client.submit_many(rows):
            yield trace_id
        sys.stdout.flush()  # who writes to a pipe line by line reads the answers line by line


async def _wait(
    client: Client,
    trace_ids: list[UUID],
    within: float,
    line: Status,
    json: bool,
) -> int:
    """Wait for all of them, within one deadline for all."""
    deadline = time.monotonic() + within
    undone = 0
    for number, trace_id in enumerate(trace_ids):
        line.update(f"waiting for {len(trace_ids) - number:,} jobs")
        job = await client.wait(trace_id, timeout=max(0.0, deadline - time.monotonic()))
        undone += job.status != "done"
        row = {"trace_id": trace_id, "status": job.status, "stage": job.stage}
        if json:
            print_line(row)
        elif job.status != "done":
            say(f"{trace_id}  {job.status}  {job.stage}", STATUS_STYLES[job.status])
    return undone


def print_line(row: dict[str, Any]) -> None:
    """One JSON object on a line of its own."""
    sys.stdout.write(as_json(row) + "\n")
