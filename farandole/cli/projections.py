"""projections: folders of SQL that fold the event log into tables."""

from __future__ import annotations

from typing import Annotated

import typer

from farandole.cli.console import cell, note, say, show, show_json, table
from farandole.cli.contract import Json, opened

projections = typer.Typer(no_args_is_help=True, help="The project's projections: list, check, refold.")


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


@projections.command("check")
def projections_check(
    names: Annotated[list[str] | None, typer.Argument(help="Default: every projection.", show_default=False)] = None,
    jobs: Annotated[int, typer.Option(min=3, max=1000, help="Jobs whose events are taken, of each source.")] = 10,
    seed: Annotated[int, typer.Option(help="What is drawn by chance is the same for the same number.")] = 1,
    events: Annotated[
        str, typer.Option(help="real (of the latest jobs), generated (from the event classes) or both.")
    ] = "both",
    json: Json = False,
) -> None:
    """Fold the same events in other orders, batches and projectors; the rows must not differ. Exit code 1 when they do.

    It works in a schema of its own, which is dropped at the end: nothing that is there changes. What differs is shown by the
    fewest events that show it.
    """
    from farandole.cli.projections_check import run

    run(names or [], jobs, seed, events, json)


def _state(now: str, folded: tuple[str, str | None] | None) -> str:
    if folded is None:
        return "new"
    return "suspended" if folded[1] else "folded" if folded[0] == now else "changed"
