"""Answering dead letters at a terminal: counts first, then the question, then a bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from farandole.cli.console import note, say, screen, show_json
from farandole.errors import ExitCode, FarandoleError
from farandole.project import find_project

if TYPE_CHECKING:
    from uuid import UUID

    from farandole.dead import Chosen, Letter
    from farandole.postgres import Connection
    from farandole.redrive import Answers
    from farandole.settings import Settings

    Answer = Callable[[Answers, Sequence[Letter], str | None], Iterator[int]]

#: Letters that could not be given back, named one by one.
SHOWN = 10


def answer_letters(
    settings: Settings,
    chosen: Chosen,
    found: Sequence[Letter],
    answer: Answer,
    what: str,
    reason: str | None,
    *,
    ask: bool,
    dry_run: bool,
    json: bool,
) -> None:
    """Counts first; then ask, then answer the letters, those of them that are still open by then."""
    from farandole.cli.letters import counts_of

    screen(sys.stderr if json else sys.stdout).print(counts_of(found))
    if dry_run or not found:
        _tell(what, 0, [], json=json, would=len(found))
        return
    if ask:
        confirm(f"{len(found):,} dead letters to be {what}?")
    ids = {letter.event_id for letter in found}
    done, left = _carry_out(settings, chosen, ids, answer, reason)
    _tell(what, done, left, json=json)
    if left:
        raise typer.Exit(ExitCode.FAILED)


def warn_of_absent(settings: Settings, connection: Connection[Any], letters: Sequence[Letter]) -> None:
    """Name the agents to which letters can be given back and which will not come: gone from the project, no worker."""
    from farandole.cli.status import declared_agents
    from farandole.dead import attended

    project = find_project()
    declared, problem = declared_agents(project, settings) if project else ({}, None)
    if problem:
        note(f"the project does not load: {problem}", "yellow")
    absent = {letter.agent for letter in letters} - declared.keys() - attended(connection)
    for agent in sorted(absent):
        note(
            f"agent {agent} is not in the project and no worker of it runs: what is given back to it lies on {agent}.wake, "
            "and nobody will handle it until it runs again",
            "yellow",
        )


def confirm(question: str) -> None:
    """Ends the command unless a person says yes."""
    if not sys.stdin.isatty():
        raise FarandoleError("nobody is here to be asked; --yes goes ahead, --dry-run only counts", ExitCode.USAGE)
    if not typer.confirm(question, err=True):
        note("nothing was done")
        raise typer.Exit(ExitCode.FAILED)


def _carry_out(
    settings: Settings,
    chosen: Chosen,
    ids: set[UUID],
    answer: Answer,
    reason: str | None,
) -> tuple[int, list[tuple[Letter, str]]]:
    """How many were answered, and what is left for which reason."""
    from rich.progress import Progress

    from farandole.redrive import answering

    with answering(settings, lambda: note("another redrive or discard is at work: waiting for its end")) as answers:
        letters = [letter for letter in answers.open(chosen) if letter.event_id in ids]
        console = screen(sys.stderr)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("dead letters", total=len(letters))
            done = 0
            for number in answer(answers, letters, reason):
                done += number
                progress.update(task, completed=done)
        return done, answers.left


def _tell(what: str, done: int, left: list[tuple[Letter, str]], *, json: bool, would: int | None = None) -> None:
    if json:
        rows = [{"event_id": letter.event_id, "trace_id": letter.trace_id, "why": why} for letter, why in left]
        show_json({what: done, "left": rows} | ({} if would is None else {"would": would}))
        return
    say(f"{done:,} {what}" if would is None else f"{would:,} would be {what}" if would else "no dead letters")
    for letter, why in left[:SHOWN]:
        note(f"left: {letter.event_id} of job {letter.trace_id}: {why}", "yellow")
    if len(left) > SHOWN:
        note(f"… and {len(left) - SHOWN:,} more; --json shows them", "yellow")
