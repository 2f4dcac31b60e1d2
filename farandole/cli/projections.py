"""projections: folders of SQL that fold the event log into tables."""

from __future__ import annotations

from typing import Annotated

import typer

from farandole.cli.console import cell, note, say, show, show_json, table
from farandole.cli.contract import Json, opened

projections = typer.Typer(no_args_is_help=True, help="The project's projections: new, list, refold.")


@projections.command("new")
def projections_new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the folder, and of its table.", show_default=False)],
    like: Annotated[
        str | None,
        typer.Option("--like", metavar="SHIPPED", help="Copy one that comes with farandole.", show_default=False),
    ] = None,
) -> None:
    """Write projections/NAME: a small working example with its rules, or a copy of stage_times, throughput or failures."""
    from farandole.project import require_project
    from farandole.projections.starting import create

    project = require_project()
    folder = create(project, name, like)
    for file in ("tables.sql", "fold.sql", "views.sql"):
        say(f"wrote {(folder / file).relative_to(project.root)}")
    say(
        f"the next projector to start builds it from all events there are; `farandole projections refold {name}` does now"
    )


@projections.command("list")
def projections_list(json: Json = False) -> None:
    """The project's projections: where each is defined, its tables, and whether it is folded as defined now."""
    from farandole import postgres
    from farandole.projections import discover
    from farandole.reading import projection_states

    project, settings = opened()
    with postgres.connect(settings) as connection:
        folded = projection_states(connection)
    rows = [
        {
            "projection": one.name,
            "state": _state(one.hash, folded.get(one.name)),
            "tables": one.table_names,
            "folder": str(one.folder),
        }
        for one in discover(project)
    ]
    if json:
        show_json(rows)
        return
    view = table("projection", "state", "tables", "folder")
    for row in rows:
        view.add_row(
            *(cell(row[name]) for name in ("projection", "state")),
            cell(", ".join(row["tables"])),
            cell(row["folder"], "dim"),
        )
    show(view)


@projections.command("refold")
def projections_refold(
    name: Annotated[str | None, typer.Argument(help="Default: every projection.", show_default=False)] = None,
) -> None:
    """Rebuild a projection from the event log. Readers see the old rows until it is done; no effect runs again."""
    from farandole.migrate import migrate as migrate_database
    from farandole.projections import discover, install, refold

    project, settings = opened()
    migrate_database(settings)
    found = discover(project)
    install(
        settings, found, lambda which, what: note(f"{which}: {what}")
    )  # its tables may be those of an older definition
    events = refold(settings, found, name, lambda which, what: note(f"{which}: {what}"))
    say(f"refolded {name or 'every projection'} from {events} events")


def _state(now: str, folded: tuple[str, str | None] | None) -> str:
    if folded is None:
        return "new"
    return "suspended" if folded[1] else "folded" if folded[0] == now else "changed"
