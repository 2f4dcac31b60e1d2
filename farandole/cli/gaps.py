"""gaps: places where a reader stands still because the log and its position do not fit; where a person says how to go on."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

import typer

from farandole.cli.console import cell, say, show, show_json, table
from farandole.cli.contract import Json
from farandole.errors import ExitCode, FarandoleError

gaps = typer.Typer(
    no_args_is_help=True, help="Partitions that stand still because records or offsets are gone: list, accept."
)


@gaps.command("list")
def gaps_list(json: Json = False) -> None:
    """The gaps that agents and the projector have stopped at. Exit code 8: there are some."""
    from farandole import gaps as known
    from farandole.cli.jobs import database

    with database() as (connection, _):
        found = known.listed(connection)
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
    from farandole import gaps as known
    from farandole.cli.jobs import database

    if not re.fullmatch(r"earliest|latest|\d{1,18}", at):
        raise FarandoleError(f"--at {at}: expected earliest, latest or an offset", ExitCode.USAGE)
    with database() as (connection, settings):
        found = [gap for gap in known.listed(connection) if gap.agent == agent]
        found = [gap for gap in found if topic in (None, gap.topic) and partition in (None, gap.partition)]
        if not found and topic is not None and partition is not None and agent != known.PROJECTOR:
            found = [known.Gap(agent, topic, partition, "")]
        if not found:
            raise FarandoleError(
                f"{agent} has no such gap; `farandole gaps list` shows those there are", ExitCode.NOT_FOUND
            )
        chosen = known.accept(settings, connection, found, at)
    if json:
        show_json(
            [{"agent": g.agent, "topic": g.topic, "partition": g.partition, "offset": at} for g, at in chosen.items()]
        )
        return
    for gap, offset in chosen.items():
        say(f"{gap.agent} goes on with {gap.topic} [{gap.partition}] at offset {offset}")
