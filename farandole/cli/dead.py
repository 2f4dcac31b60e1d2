"""dead list, show, redrive, discard: what could not be handled, and what a person decides about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farandole.cli.answering import answer_letters, warn_of_absent
from farandole.cli.console import note, say, screen, show_json
from farandole.cli.contract import DryRun, Json, Yes
from farandole.cli.jobs import Key, age, database, find
from farandole.errors import ExitCode, FarandoleError, Unreachable

if TYPE_CHECKING:
    from farandole.dead import Chosen, Letter, Unfolded
    from farandole.postgres import Connection
    from farandole.settings import Settings

dead = typer.Typer(no_args_is_help=True, help="Dead letters: list, show, give back, give up.")

OfAgent = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only letters of this agent.")]
Cause = Annotated[str | None, typer.Option(metavar="WORD", help="Only letters of this cause, such as rejected.")]
Older = Annotated[str | None, typer.Option("--older-than", metavar="AGE", help="Such as 90s, 5m, 2h, 3d.")]
Newer = Annotated[str | None, typer.Option("--newer-than", metavar="AGE", help="Such as 90s, 5m, 2h, 3d.")]
OfJob = Annotated[
    str | None,
    typer.Option("--job", metavar="TRACE", help="Only letters of this job; its first characters are enough."),
]
Reason = Annotated[str | None, typer.Option(help="Kept in the job's journey.")]
Forget = Annotated[
    list[str] | None,
    typer.Option(
        "--forget",
        metavar="STEP",
        help="Run this step of their handlers anew, under another idempotency key; may be repeated.",
        show_default=False,
    ),
]
Most = Annotated[
    int | None, typer.Option("--limit", min=1, help="At most so many, the oldest first.", show_default=False)
]


@dead.command("list")
def list_(
    agent: OfAgent = None,
    cause: Cause = None,
    older: Older = None,
    newer: Newer = None,
    job: OfJob = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most so many, the oldest first.")] = 20,
    every: Annotated[bool, typer.Option("--all", help="Those that were redriven or discarded, too.")] = False,
    json: Json = False,
) -> None:
    """Count the dead letters by agent and cause, and list them."""
    from farandole import dead as known
    from farandole.cli.letters import counts_table, lines

    with database() as (connection, settings):
        beyond = _beyond(settings, connection)
        chosen = _chosen(connection, settings, agent, cause, older, newer, job, limit, answered=every)
        gone = () if every else beyond.answered
        counts, found = known.counts(connection, chosen, gone), known.letters(connection, chosen, gone)
    if json:
        show_json({"counts": [asdict(one) for one in counts], "letters": [asdict(one) for one in found]})
        return
    if not counts:
        say("no dead letters", "dim")
        return
    screen().print(counts_table(counts))
    for line in lines(found):
        screen().print(line, no_wrap=True, overflow="ellipsis", crop=True)
    if len(found) < (total := sum(one.letters for one in counts)):
        note(f"{len(found)} of {total:,}, the oldest first; --limit shows more", "dim")


@dead.command()
def show(
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="A letter's event id, or its job's id or first characters.", show_default=False
        ),
    ] = None,
    key: Key = None,
    raw: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the record's value there, as it was.")] = None,
    json: Json = False,
) -> None:
    """Show everything about a letter, or about all letters of a job: the record as it was, and what became of it."""
    from farandole import dead as known
    from farandole.cli.letters import as_row, panel

    with database() as (connection, settings):
        found = _letters_of(connection, settings, which, key)
    if raw and len(found) > 1:
        several = ", ".join(str(letter.event_id) for letter in found)
        raise FarandoleError(f"this job has {len(found)} letters; give the id of one: {several}", ExitCode.USAGE)
    records = {letter.event_id: (record, told) for letter, record, told in known.raw(settings, found)}
    shown: list[dict[str, Any]] = []
    for letter in found:
        record, told = records.get(letter.event_id, (None, None))
        if raw:
            if record is None:
                raise FarandoleError(f"the record is gone from {letter.dead_letter_topic}", ExitCode.NOT_FOUND)
            raw.write_bytes(record.value or b"")
        event = known.decoded(settings, record, told) if record and told else None
        shown.append(as_row(letter, record, told, event))
    if json:
        show_json(shown)
        return
    for row in shown:
        screen().print(panel(row))


@dead.command()
def redrive(
    agent: OfAgent = None,
    cause: Cause = None,
    older: Older = None,
    newer: Newer = None,
    job: OfJob = None,
    limit: Most = None,
    reason: Reason = None,
    forget: Forget = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Give dead letters back to their agents, and to nobody else: their jobs run again, under the next run.

    Steps that have finished are not run again, but for those named by --forget.
    """
    from farandole.redrive import Answers

    names = list(dict.fromkeys(forget or []))
    with database() as (connection, settings):
        chosen = _chosen(connection, settings, agent, cause, older, newer, job, limit)
        found = _open(settings, connection, chosen)
        warn_of_absent(settings, connection, found)
        _tell_of_forgotten(connection, found, names)
    give_back = partial(Answers.redrive, forget=names)
    answer_letters(settings, chosen, found, give_back, "redriven", reason, ask=not yes, dry_run=dry_run, json=json)


@dead.command()
def discard(
    agent: OfAgent = None,
    cause: Cause = None,
    older: Older = None,
    newer: Newer = None,
    job: OfJob = None,
    limit: Most = None,
    reason: Reason = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Give dead letters up: their jobs end as failed. The records stay where they lie."""
    from farandole.redrive import Answers

    with database() as (connection, settings):
        chosen = _chosen(connection, settings, agent, cause, older, newer, job, limit)
        found = _open(settings, connection, chosen)
    answer_letters(
        settings, chosen, found, Answers.discard, "discarded", reason, ask=not yes, dry_run=dry_run, json=json
    )


def _tell_of_forgotten(connection: Connection[Any], letters: Sequence[Letter], names: Sequence[str]) -> None:
    """How many steps are to run anew. Raises FarandoleError for a name that is none."""
    from farandole.steps import forgetting

    for name, number in forgetting.check(connection, [letter.event_id for letter in letters], names).items():
        note(f"to run anew: {number:,} of step {name}", "yellow")


def _chosen(
    connection: Connection[Any],
    settings: Settings,
    agent: str | None,
    cause: str | None,
    older: str | None,
    newer: str | None,
    job: str | None,
    limit: int | None,
    *,
    answered: bool = False,
) -> Chosen:
    """The options, as a choice: ages as times, the beginning of a job's id as the job."""
    from farandole.dead import Chosen

    now = datetime.now(UTC)
    return Chosen(
        agent,
        cause,
        now - age(older, "--older-than") if older else None,
        now - age(newer, "--newer-than") if newer else None,
        find(connection, settings, job, None, None).trace_id if job else None,
        None,
        limit,
        answered,
    )


def _letters_of(connection: Connection[Any], settings: Settings, which: str | None, key: str | None) -> list[Letter]:
    """The letter of an event id, else those of a job; answered ones too."""
    from farandole import ids
    from farandole.dead import Chosen, letters

    if (
        which
        and key is None
        and ids.is_id(which)
        and (found := letters(connection, Chosen(event_id=which, answered=True)))
    ):
        return found
    job = find(connection, settings, which, key, None)
    found = letters(connection, Chosen(trace_id=job.trace_id, answered=True))
    if not found:
        raise FarandoleError(f"job {job.trace_id} has no dead letters", ExitCode.NOT_FOUND)
    return found


def _beyond(settings: Settings, connection: Connection[Any]) -> Unfolded:
    """What the log knows and the projection does not; told to the person, as the list is short of it."""
    from farandole import dead as known

    try:
        found = known.unfolded(settings, connection)
    except Unreachable as away:
        note(f"shown is what the projection knows: {away}", "yellow")
        return known.Unfolded(0, frozenset())
    if found.letters:
        more = f"{found.letters:,}{' or more' if found.letters == known.MANY else ''}"
        note(f"the projector is behind: {more} dead letters on the log are not counted here", "yellow")
    return found


def _open(settings: Settings, connection: Connection[Any], chosen: Chosen) -> list[Letter]:
    from farandole.dead import letters

    return letters(connection, chosen, _beyond(settings, connection).answered)
