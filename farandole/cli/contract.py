"""topics, migrate: what the broker and the database are told, and whether it still holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from farandole.cli.console import cell, note, say, show, show_json, table
from farandole.errors import ExitCode
from farandole.project import Project, require_project

if TYPE_CHECKING:
    from farandole.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="For programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]


def topics(
    check: Annotated[
        bool, typer.Option("--check", help="Create nothing; exit code 1 when something is missing or differs.")
    ] = False,
    json: Json = False,
) -> None:
    """Create the topics that the agents read and emit; show where existing ones differ. Nothing is altered."""
    from farandole import topics as declared
    from farandole.flow import agent_files, event_classes, load_agents

    project, settings = opened()
    agents = load_agents(agent_files(project)).values()
    wanted = {topic.name: topic for topic in declared.of_events(settings, event_classes(project))}
    wanted |= {topic.name: topic for topic in declared.of_agents(settings, agents) if topic.name not in wanted}
    rows = (declared.compare if check else declared.ensure)(settings, list(wanted.values()))
    if json:
        show_json([asdict(row) for row in rows])
    else:
        styles = {"ok": "green", "created": "cyan", "missing": "red", "drift": "yellow"}
        view = table("topic", "status", "setting", "declared", "on the broker")
        for row in rows:
            view.add_row(
                cell(row.topic),
                cell(row.status, styles[row.status]),
                cell(row.setting),
                cell(row.declared),
                cell(row.found),
            )
        show(view)
    if any(row.status == "drift" for row in rows) and not json:
        note("farandole never alters a topic: more partitions move keys to others, and their order is lost: you decide")
    if check and any(row.status in ("drift", "missing") for row in rows):
        raise typer.Exit(ExitCode.FAILED)


def migrate(json: Json = False) -> None:
    """Bring the database to the version this farandole needs. Workers do so at start; this is for doing it before."""
    from farandole.migrate import migrate as apply

    _, settings = opened()
    applied = apply(settings)
    if json:
        show_json({"schema": settings.schema_name, "applied": applied})
    else:
        say(f"schema {settings.schema_name}: " + (f"applied {', '.join(applied)}" if applied else "up to date"))


def opened() -> tuple[Project, Settings]:
    """The project around the working folder and its settings."""
    from farandole.settings import load_settings

    project = require_project()
    return project, load_settings(project)
