"""parked list, show, retry, discard: what the projector could not read as events, and what a person decides about it."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farandole.cli.console import note, say, screen, show_json
from farandole.cli.contract import DryRun, Json, Yes
from farandole.cli.jobs import database
from farandole.cli.parked_choice import (
    All,
    Discarded,
    OfCause,
    OfJob,
    OfTopic,
    Where,
    check_narrowed,
    chosen_by,
    total_of,
)
from farandole.errors import ExitCode, FarandoleError, Unreachable

if TYPE_CHECKING:
    from farandole.parked import Chosen, ParkedRecord
    from farandole.postgres import Connection
    from farandole.projector.parking import Retried
    from farandole.projector.rows import Parked
    from farandole.settings import Settings

parked = typer.Typer(
    no_args_is_help=True, help="Records that the projector could not read as events: list, show, try again, give up."
)


@parked.command("list")
def list_(
    where: Where = None,
    topic: OfTopic = None,
    cause: OfCause = None,
    job: OfJob = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most so many, by topic, partition and offset.")] = 20,
    discarded: Discarded = False,
    json: Json = False,
) -> None:
    """Count the parked records by topic and cause, and list them."""
    from farandole import parked as known
    from farandole.cli.parked_view import as_row, counts_table, lines

    with database() as (connection, settings):
        chosen = chosen_by(connection, settings, where, topic, cause, job, discarded)
        counts, found = known.counts(connection, chosen), known.rows(connection, chosen, limit)
    if json:
        show_json({"counts": [asdict(one) for one in counts], "records": [as_row(one) for one in found]})
        return
    if not counts:
        say("no parked records", "dim")
        return
    screen().print(counts_table(counts))
    for line in lines(found):
        screen().print(line, no_wrap=True, overflow="ellipsis", crop=True)
    if len(found) < (total := sum(one.records for one in counts)):
        note(f"{len(found)} of {total:,}; --limit shows more", "dim")


@parked.command()
def show(
    where: Where = None,
    job: OfJob = None,
    raw: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the record's value there, as it was.")] = None,
    json: Json = False,
) -> None:
    """Show everything about a record, or about all of a job: headers, key, value, error, and what can be done."""
    from farandole import parked as known
    from farandole.cli.parked_view import panel, whole

    with database() as (connection, settings):
        chosen = chosen_by(connection, settings, where, None, None, job, True)
        check_narrowed(chosen, False)
        found = known.rows(connection, chosen, 100)
    if not found:
        raise FarandoleError(
            "no such record is parked; `farandole parked list` shows those there are", ExitCode.NOT_FOUND
        )
    if raw:
        if len(found) > 1:
            several = ", ".join(one.place for one in found)
            raise FarandoleError(f"this job has {len(found)} parked records; give one: {several}", ExitCode.USAGE)
        raw.write_bytes(found[0].value or b"")
    states = _today(settings, found)
    if json:
        show_json([whole(one, state) for one, state in zip(found, states, strict=True)])
        return
    for one, state in zip(found, states, strict=True):
        screen().print(panel(one, state))


@parked.command()
def retry(
    where: Where = None,
    topic: OfTopic = None,
    cause: OfCause = None,
    job: OfJob = None,
    every: All = False,
    discarded: Discarded = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Read records again with the schemas of today, and fold those that are events now. Exit code 1: some stay parked."""
    from farandole.projector.parking import Retry

    with database() as (connection, settings):
        chosen = chosen_by(connection, settings, where, topic, cause, job, discarded)
        total = total_of(connection, chosen, every)
        if dry_run:
            done = _foresee(connection, settings, chosen)
        else:
            with closing(Retry(settings)) as again:
                done = _with_bar(again.run(connection, chosen), total)
    if json:
        told = {"tried": done.tried, "already_in_the_log": done.known, "left": dict(done.left)}
        show_json({"would_fold" if dry_run else "folded": done.new} | told)
    else:
        _tell(done, "can be read, and would be folded" if dry_run else "folded")
    if done.left and not dry_run:
        raise typer.Exit(ExitCode.FAILED)


@parked.command()
def discard(
    where: Where = None,
    topic: OfTopic = None,
    cause: OfCause = None,
    job: OfJob = None,
    every: All = False,
    reason: Annotated[str, typer.Option(help="Kept with the records.")] = ...,  # type: ignore[assignment]
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Give records up: they count as trouble no longer. Their bytes stay; `retry --discarded` can still take them up."""
    from farandole import parked as known
    from farandole.cli.answering import confirm

    with database() as (connection, settings):
        chosen = chosen_by(connection, settings, where, topic, cause, job, False)
        done = total_of(connection, chosen, every)
        if done and not dry_run:
            if not yes:
                confirm(f"{done:,} parked records to be discarded?")
            done = known.discard(connection, chosen, reason)
    if json:
        show_json({"would": done} if dry_run else {"discarded": done})
    else:
        say((f"{done:,} would be discarded" if dry_run else f"{done:,} discarded") if done else "no parked records")


def _tell(done: Retried, folded: str) -> None:
    if not done.tried:
        say("no parked records")
        return
    known = f", {done.known:,} already in the log" if done.known else ""
    say(f"{done.new:,} {folded}{known}")
    if done.left:
        say(
            "parked still: " + ", ".join(f"{number:,} {cause}" for cause, number in sorted(done.left.items())), "yellow"
        )


def _with_bar(batches: Any, total: int) -> Retried:
    """The sum of the batches, with a bar where a person looks."""
    from rich.progress import Progress

    from farandole.postgres import OUTAGES
    from farandole.projector.parking import Retried

    console, done = screen(sys.stderr), Retried()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("parked records", total=total)
        try:
            for one in batches:
                done.add(one)
                progress.update(task, completed=done.tried)
        except (FarandoleError, *OUTAGES):
            if done.tried:
                note(f"{done.tried:,} of {total:,} were tried before that, {done.new:,} of them folded", "yellow")
            raise
    return done


def _foresee(connection: Connection[Any], settings: Settings, chosen: Chosen) -> Retried:
    from farandole import parked as known
    from farandole.projector.parking import Retried, today

    done = Retried()
    for size, left in today(settings, known.pages(connection, chosen, settings.batch), chosen):
        done.tried, done.new = done.tried + size, done.new + size - len(left)
        done.left.update(one.cause for one in left)
    return done


def _today(settings: Settings, found: list[ParkedRecord]) -> list[Parked | str | None]:
    """What keeps each record from being an event today; a text where that cannot be found out."""
    from farandole.projector.parking import today

    try:
        [(_, left)] = today(settings, [found])
    except Unreachable as away:
        return [str(away)] * len(found)
    kept = {(one.record.topic, one.record.offset, one.record.partition, one.record.timestamp_ms): one for one in left}
    return [kept.get((settings.topic(one.topic), one.offset, one.partition, one.timestamp_ms)) for one in found]
