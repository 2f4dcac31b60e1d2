"""status: the local stack, and how agents and projector stand on the services they use."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from farandole.cli.console import as_json, show_json
from farandole.cli.local import has_services
from farandole.cli.stack import services, uncut
from farandole.cli.standing_view import standing_view
from farandole.errors import ConfigurationError, ExitCode, FarandoleError
from farandole.project import Project, require_project

if TYPE_CHECKING:
    from farandole.settings import Settings
    from farandole.stack.status import Status
    from farandole.standing import Standing

#: Seconds between two looks of `--watch`; a worker shows itself as often.
EVERY = 2.0


@dataclass(frozen=True, slots=True)
class Report:
    """What one look found; a part is None where there is nothing to look at."""

    stack: Status | None
    standing: Standing | None
    problem: str | None = None  #: the project's files do not load: its agents are not known

    @property
    def code(self) -> ExitCode:
        """How the command ends. The first that holds: stack down, unreachable, standing still, all well."""
        if self.stack and not self.stack.running:
            return ExitCode.FAILED
        if self.standing and (self.standing.broker or self.standing.database):
            return ExitCode.UNREACHABLE
        if self.problem:
            return ExitCode.CONFIGURATION
        return ExitCode.STANDS_STILL if self.standing and self.standing.still else ExitCode.OK

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON. The names are part of the interface."""
        told: dict[str, Any] = {"exit_code": self.code.value, "exit": self.code.name.lower(), "problem": self.problem}
        if self.stack:
            told |= self.stack.as_dict()
        return told | (self.standing.as_dict() if self.standing else {})


def status(
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Only this one, with its workers.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every 2 s, until Ctrl-C.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object, for programs; a line each with --watch.")
    ] = False,
) -> None:
    """Show the local stack, and of each agent its lag, what is in flight, waits, dead letters, workers and last error.

    Exit codes: 0 all is well, lag included; 8 something stands still (a gap, a brake, an outage, a suspended projection);
    5 broker or database do not answer; 3 the project's files do not load; 1 the local stack is not up.
    """
    project = require_project()
    if watch:
        raise typer.Exit(_watch(project, agent, json))
    report = look(project, agent)
    if json:
        show_json(report.as_dict())
    else:
        uncut().print(_drawn(report, agent))
    if report.code:
        raise typer.Exit(report.code)


def look(project: Project, agent: str | None = None) -> Report:
    """One look at everything. Raises FarandoleError for an agent that nothing is known of."""
    from farandole.health import look as look_at
    from farandole.stack.stack import Stack

    stack = Stack(project.data)
    found = stack.status()
    given: dict[str, str] = {}
    if not found.running and any(service.state == "running" for service in found.services):
        given = asdict(stack.endpoints)  # one of the two is down: the other one may still tell
    settings, own = _settings(project, given)
    ours = None if own else found
    if not (settings.kafka_bootstrap_servers or settings.database_url):
        return Report(found, None)
    declared, problem = declared_agents(project, settings)
    standing = look_at(settings, declared, agent)
    whole = not (standing.broker or standing.database)
    if agent and whole and agent not in declared and not standing.agents[0].known:
        names = ", ".join(declared) or "none"
        raise FarandoleError(f"no agent {agent!r}, in the project ({names}) or on the broker", ExitCode.NOT_FOUND)
    return Report(ours, standing, problem)


def _settings(project: Project, given: dict[str, str]) -> tuple[Settings, bool]:
    """The settings, and whether the user names both services, so that a local stack has no part in it."""
    from farandole.settings import load_settings

    return load_settings(project, **given), has_services(project)


def declared_agents(project: Project, settings: Settings) -> tuple[dict[str, str], str | None]:
    """The project's agents and the topics they read; or why they do not load."""
    from farandole.flow import agent_files, load_agents

    try:
        agents = load_agents(agent_files(project)).values()
        return {one.name: one.wiring(settings.flow).topic for one in agents}, None
    except ConfigurationError as error:
        return {}, str(error)


def _watch(project: Project, agent: str | None, json: bool) -> ExitCode:
    """Look until Ctrl-C; how the last look would have ended."""
    report = look(project, agent)
    screen = Console(highlight=False) if sys.stdout.isatty() else uncut()
    live = Live(_drawn(report, agent), console=screen, auto_refresh=False) if screen.is_terminal and not json else None
    try:
        if live:
            live.start(refresh=True)
        while True:
            if json:
                typer.echo(as_json(report.as_dict()))
            elif live:
                live.update(_drawn(report, agent), refresh=True)
            else:
                screen.print(_drawn(report, agent), Text())
            time.sleep(EVERY)
            report = look(project, agent)
    except KeyboardInterrupt:
        return report.code
    finally:
        if live:
            live.stop()


def _drawn(report: Report, agent: str | None) -> RenderableType:
    parts: list[RenderableType] = []
    if report.stack:
        parts.append(services(report.stack))
    if report.standing:
        parts += [Text(), standing_view(report.standing, closely=agent is not None)]
    if report.problem:
        parts.append(Text(f"the project does not load: {report.problem}", style="bold red"))
    return Group(*parts)
