"""Which parked records a person means: the options of `parked`, and what they choose."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farandole.cli.jobs import find
from farandole.errors import ExitCode, FarandoleError

if TYPE_CHECKING:
    from farandole.parked import Chosen
    from farandole.postgres import Connection
    from farandole.settings import Settings

Where = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RECORD",
        help="One record: TOPIC/PARTITION@OFFSET, as `list` shows it, or these three with blanks between.",
        show_default=False,
    ),
]
OfTopic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="Only records of this topic.")]
OfCause = Annotated[
    str | None, typer.Option("--cause", metavar="WORD", help="Only records parked as, say, undecodable.")
]
OfJob = Annotated[
    str | None,
    typer.Option(
        "--job", metavar="TRACE", help="Only records that seem to belong to this job; its id, or its beginning."
    ),
]
All = Annotated[bool, typer.Option("--all", help="All that are parked.")]
Discarded = Annotated[bool, typer.Option("--discarded", help="Those that were discarded, too.")]


def chosen_by(
    connection: Connection[Any],
    settings: Settings,
    where: list[str] | None,
    topic: str | None,
    cause: str | None,
    job: str | None,
    discarded: bool,
) -> Chosen:
    """The options, as a choice."""
    from farandole import ids
    from farandole.parked import Chosen

    trace = job.lower() if job else None
    if trace and not ids.is_id(trace):
        trace = str(find(connection, settings, trace, None, None).trace_id)
    chosen = Chosen(settings.bare(topic) if topic else None, None, None, cause, trace, discarded)
    if not where:
        return chosen
    place = re.fullmatch(r"([a-zA-Z0-9._-]{1,249})/(\d{1,9})[/@](\d{1,18})", "/".join(where))
    if not place:
        raise FarandoleError(
            f"{' '.join(where)!r} is no place of a record; expected TOPIC/PARTITION@OFFSET, such as jobs.done/0@17",
            ExitCode.USAGE,
        )
    return replace(chosen, topic=settings.bare(place[1]), partition=int(place[2]), offset=int(place[3]))


def check_narrowed(chosen: Chosen, every: bool) -> None:
    """Nobody shall take up or give up everything by leaving an option out. Raises FarandoleError."""
    narrowed = replace(chosen, discarded=False) != type(chosen)()
    if narrowed == every:
        raise FarandoleError(
            "--all leaves nothing to choose; give one or the other"
            if every
            else "which records? give TOPIC/PARTITION@OFFSET, --topic, --cause or --job, or --all",
            ExitCode.USAGE,
        )


def total_of(connection: Connection[Any], chosen: Chosen, every: bool) -> int:
    """How many records are chosen. Raises FarandoleError where nothing was, or the one record is not there."""
    from farandole import parked as known

    check_narrowed(chosen, every)
    total = sum(one.records for one in known.counts(connection, chosen))
    if total or chosen.offset is None:
        return total
    there = known.rows(connection, replace(chosen, discarded=True), 1)
    why = f"was discarded ({there[0].reason}); `retry --discarded` takes it up" if there else "is not parked"
    raise FarandoleError(f"{chosen.topic}/{chosen.partition}@{chosen.offset} {why}", ExitCode.NOT_FOUND)
