"""gaps: places where a reader stands still because the log and its position do not fit; where a person says how to go on."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from farandole.cli.console import cell, note, say, show, show_json, table
from farandole.cli.contract import Json
from farandole.errors import ExitCode, FarandoleError, Unreachable
from farandole.project import find_project

if TYPE_CHECKING:
    from farandole.settings import Settings
    from farandole.standing import Standing

gaps = typer.Typer(
    no_args_is_help=True, help="Partitions that stand still because records or offsets are gone: list, accept."
)


@gaps.command("list")
def gaps_list(json: Json = False) -> None:
    """The gaps at which agents and the projector have stopped, or would if they ran. Exit code 8: there are some."""
    from farandole import gaps as known

    standing = _standing()[1]
    if standing.broker:
        note(f"shown is what readers have stopped at: {standing.broker}", "yellow")
    found = known.listed(standing)
    if json:
        show_json([asdict(gap) for gap in found])
    elif found:
        view = table("who", "topic", "partition", "why")
        for gap in found:
            view.add_row(*(cell(value) for value in (gap.agent, gap.topic, gap.partition, gap.reason)))
        show(view)
    else:
        say("no gaps")
    if found:
        raise typer.Exit(ExitCode.STANDS_STILL)


@gaps.command("accept")
def gaps_accept(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent, or: projector.")],
    topic: Annotated[str | None, typer.Argument(help="Default: all its gaps.", show_default=False)] = None,
    partition: Annotated[
        int | None, typer.Argument(min=0, help="Default: all of the topic's.", show_default=False)
    ] = None,
    at: Annotated[str, typer.Option(help="Where to go on: earliest, latest, or an offset.")] = ...,  # type: ignore[assignment]
    json: Json = False,
) -> None:
    """Go on at earliest (what is there is handled, some of it perhaps again), at latest (it is skipped), or at an offset.

    With topic and partition given there need not be a gap: an agent is moved there. It takes that up at its next start, a
    running projector within 15 s.
    """
    accept(agent, topic, partition, at, json=json)


def accept(agent: str, topic: str | None, partition: int | None, at: str, *, json: bool) -> None:
    """Have a reader go on, and say where."""
    from farandole import gaps as known
    from farandole import postgres

    if not re.fullmatch(r"earliest|latest|\d{1,18}", at):
        raise FarandoleError(f"--at {at}: expected earliest, latest or an offset", ExitCode.USAGE)
    settings, standing = _standing()
    if standing.broker:
        raise Unreachable(standing.broker)
    found = known.chosen(standing, agent, topic, partition)
    with postgres.connect(settings, application="farandole gaps") as connection:
        chosen = known.accept(settings, connection, found, at)
    if json:
        show_json(
            [{"agent": g.agent, "topic": g.topic, "partition": g.partition, "offset": at} for g, at in chosen.items()]
        )
        return
    for gap, offset in chosen.items():
        say(f"{gap.agent} goes on with {gap.topic} [{gap.partition}] at offset {offset}")


def _standing() -> tuple[Settings, Standing]:
    """What `farandole status` sees, whether or not there is a project around. Raises Unreachable without a database."""
    from farandole.cli.status import declared_agents
    from farandole.health import look
    from farandole.settings import load_settings

    project = find_project()
    settings = load_settings(project)
    declared, problem = declared_agents(project, settings) if project else ({}, None)
    if problem:
        note(f"the project does not load: {problem}", "yellow")
    standing = look(settings, declared, oldest=0)
    if standing.database:
        raise Unreachable(standing.database)
    return settings, standing
