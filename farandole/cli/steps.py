"""steps list, show, release: effects, how they stand, and what a person decides about those of which nobody knows."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farandole.cli.console import note, say, screen, show_json
from farandole.cli.contract import Json
from farandole.cli.jobs import Key, database, find
from farandole.errors import ExitCode, FarandoleError

if TYPE_CHECKING:
    from farandole.postgres import Connection
    from farandole.settings import Settings
    from farandole.steps.listing import Effect

steps = typer.Typer(no_args_is_help=True, help="Effects of handlers (model calls, mails): list, show, release.")


class State(StrEnum):
    """How an effect can stand."""

    HELD = "held"
    LEASED = "leased"
    FAILED = "failed"
    DONE = "done"
    FORGOTTEN = "forgotten"


Job = Annotated[
    str | None, typer.Argument(metavar="JOB", help="The job's id, or its first characters.", show_default=False)
]
OneJob = Annotated[str, typer.Argument(metavar="JOB", help="The job's id, or its first characters.")]
Name = Annotated[str, typer.Argument(metavar="STEP", help="The step's name.")]
OfAgent = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only steps of this agent.")]
OfEvent = Annotated[
    str | None, typer.Option("--event", metavar="ID", help="Only of this event's handling, where a job has several.")
]


@steps.command("list")
def list_(
    job: Job = None,
    key: Key = None,
    agent: OfAgent = None,
    name: Annotated[str | None, typer.Option(metavar="STEP", help="Only steps of this name.")] = None,
    state: Annotated[State | None, typer.Option(help="Only those that stand like this.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    json: Json = False,
) -> None:
    """List effects: those that wait for a person first, then the latest."""
    from farandole.cli.effects_view import as_row, lines
    from farandole.steps.listing import effects

    with database() as (connection, settings):
        trace_id = _trace(connection, settings, job, key) if job or key else None
        found = effects(
            connection,
            trace_id=trace_id,
            agent=agent,
            name=name,
            state=state.value if state else None,
            limit=limit,
        )
    if json:
        show_json([as_row(effect) for effect in found])
        return
    if not found:
        say("no steps", "dim")
        return
    for line in lines(found):
        screen().print(line, no_wrap=True, overflow="ellipsis", crop=True)
    if len(found) == limit:
        note(f"the first {limit}; --limit shows more", "dim")


@steps.command()
def show(job: OneJob, name: Name, agent: OfAgent = None, event: OfEvent = None, json: Json = False) -> None:
    """Show everything about a step: its result, its idempotency key, its model calls and what they cost."""
    from farandole.cli.effects_view import panel, whole
    from farandole.steps.listing import calls

    with database() as (connection, settings):
        found = [(effect, calls(connection, effect)) for effect in _of_job(connection, settings, job, name, agent, event)]
    if json:
        show_json([whole(*each) for each in found])
        return
    for each in found:
        screen().print(panel(*each))
    if len(found) > 1:
        note(f"{len(found)} steps of this job have this name; --agent and --event choose one", "dim")


@steps.command()
def release(
    job: OneJob,
    name: Name,
    agent: OfAgent = None,
    event: OfEvent = None,
    done: Annotated[
        str | None, typer.Option("--done", metavar="JSON", help="It has happened: this is its result.", show_default=False)
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="It has not happened: it may run again.")] = False,
    reason: Annotated[str | None, typer.Option(help="Kept with the step.")] = None,
    json: Json = False,
) -> None:
    """Say what came of a step that is held, or whose worker is gone: --done with its result, or --again.

    With --again it runs under the same idempotency key. Look before you decide: at the mailbox, at the other system.
    """
    from farandole.cli.effects_view import as_row
    from farandole.steps import releasing

    if (done is None) == (not again):
        raise FarandoleError("what came of it? --done JSON if it has happened, --again if it has not", ExitCode.USAGE)
    result = None if done is None else releasing.checked(done)
    with database() as (connection, settings):
        seen = _one(_of_job(connection, settings, job, name, agent, event))
        changed = releasing.release(connection, seen, result, reason)
        (now,) = _of_job(connection, settings, job, name, seen.agent, str(seen.event_id))
        letter = _open_letter(connection, now)
    command = f"farandole dead redrive --agent {now.agent} --job {now.trace_id}" if letter else None
    if json:
        show_json(as_row(now) | {"changed": changed, "next": command})
        return
    became = "is done" if result is not None else "may run again"
    say(f"step {now.name} of {now.agent} {became}{'' if changed else ': it was so before'}")
    if command:
        say(f"its event is a dead letter: {command}")
    else:
        note("its event is no dead letter that the projection knows: whoever handles it next finds the decision", "dim")


def _open_letter(connection: Connection[Any], effect: Effect) -> bool:
    """Whether the event is a dead letter that nobody has answered, as far as the projection knows."""
    from farandole.dead import Chosen, letters

    return bool(letters(connection, Chosen(agent=effect.agent, trace_id=effect.trace_id)))


def _trace(connection: Connection[Any], settings: Settings, job: str | None, key: str | None) -> str:
    """The job that was meant: by its whole id also where nothing of it was folded yet."""
    from farandole import ids

    if job is not None and key is None and ids.is_id(job.lower()):
        return job.lower()
    return str(find(connection, settings, job, key, None).trace_id)


def _of_job(
    connection: Connection[Any], settings: Settings, job: str, name: str, agent: str | None, event: str | None
) -> list[Effect]:
    """The steps of that name. Raises FarandoleError that lists those there are, when there is none."""
    from farandole import ids
    from farandole.steps.listing import effects

    if event is not None and not ids.is_id(event):
        raise FarandoleError(f"--event {event}: expected the id of an event", ExitCode.USAGE)
    trace_id = _trace(connection, settings, job, None)
    found = effects(connection, trace_id=trace_id, name=name, agent=agent, event_id=event)
    if not found:
        there = sorted({f"{one.name} of {one.agent}" for one in effects(connection, trace_id=trace_id, limit=1000)})
        known = f"it has {', '.join(there)}" if there else "it has none"
        raise FarandoleError(f"job {trace_id} has no such step {name!r}; {known}", ExitCode.NOT_FOUND)
    return found


def _one(found: list[Effect]) -> Effect:
    if len(found) > 1:
        several = "; ".join(f"--agent {one.agent} --event {one.event_id} ({one.state})" for one in found)
        raise FarandoleError(f"{len(found)} steps of this job have this name; choose one: {several}", ExitCode.USAGE)
    return found[0]
