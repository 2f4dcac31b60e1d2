"""projections: folders of SQL that fold the event log into tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from farandole.cli.console import cell, note, say, show, show_json, table
from farandole.cli.contract import Json, opened
from farandole.cli.storage_view import bytes_text
from farandole.errors import ExitCode

if TYPE_CHECKING:
    from farandole.projections.states import State

projections = typer.Typer(
    no_args_is_help=True, help="Folders of SQL that fold events into tables: new, list, status, check, refold, drop."
)

_STYLES = {"live": "green", "building": "cyan", "failed": "red", "suspended": "red"}


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
        f"a projector that starts builds it from all events there are; `farandole projections refold {name}` does so now"
    )


@projections.command("list")
def projections_list(json: Json = False) -> None:
    """The project's projections: where each is defined, its tables, and whether it is folded as defined now."""
    from farandole.projections import discover

    project, _ = opened()
    stands = {one.name: one.state for one in _states()}
    rows = [
        {"projection": one.name, "state": stands[one.name], "tables": one.table_names, "folder": one.where}
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


@projections.command("status")
def projections_status(json: Json = False) -> None:
    """How each projection stands: live, being built, suspended or failed, with the error. Exit code 8: one stands still."""
    found = _states()
    if json:
        show_json([asdict(one) for one in found])
    else:
        view = table("projection", "state", "live since", "size", "what is wrong")
        for one in found:
            since = one.live_since and one.live_since.strftime("%Y-%m-%d %H:%M")
            size = bytes_text(sum(one.tables.values())) if one.tables else None
            view.add_row(
                cell(one.name),
                cell(_word(one), _STYLES.get(one.state, "yellow")),
                cell(since),
                cell(size),
                cell(one.error),
            )
        show(view)
    if any(one.error for one in found):
        raise typer.Exit(ExitCode.STANDS_STILL)


@projections.command("refold")
def projections_refold(
    name: Annotated[str | None, typer.Argument(help="Default: every projection.", show_default=False)] = None,
    from_what_is_left: Annotated[
        bool, typer.Option("--from-what-is-left", help="Though jobs were forgotten: what came of them is lost.")
    ] = False,
) -> None:
    """Rebuild a projection from the event log. Readers see the old rows until it is done; no effect runs again."""
    from farandole.migrate import migrate as migrate_database
    from farandole.projections import discover, refold

    project, settings = opened()
    migrate_database(settings)
    events = refold(
        settings,
        discover(project),
        name,
        lambda which, what: note(f"{which}: {what}"),
        from_what_is_left=from_what_is_left,
    )
    say(f"refolded {name or 'every projection'} from {events} events")


@projections.command("check")
def projections_check(
    names: Annotated[list[str] | None, typer.Argument(help="Default: every projection.", show_default=False)] = None,
    jobs: Annotated[int, typer.Option(min=3, max=1000, help="Jobs whose events are taken, of each source.")] = 10,
    seed: Annotated[int, typer.Option(help="What is drawn by chance is the same for the same number.")] = 1,
    events: Annotated[
        Literal["both", "real", "generated"],
        typer.Option(help="Of the latest jobs, from the event classes, or both."),
    ] = "both",
    json: Json = False,
) -> None:
    """Fold the same events in other orders, batches and projectors; the rows must not differ. Exit code 1 when they do.

    It works in a schema of its own, which is dropped at the end: nothing that is there changes. What differs is shown by the
    fewest events that show it.
    """
    from farandole.cli.projections_check import run

    run(names or [], jobs, seed, events, json)


@projections.command("drop")
def projections_drop(
    name: Annotated[str, typer.Argument(help="Its folder is gone already.", show_default=False)],
) -> None:
    """Drop the tables and views of a projection that has no folder any more; until then it is kept and folded."""
    from farandole.projections import discover, drop

    project, settings = opened()
    drop(settings, discover(project), name)
    say(f"dropped {name}")


def _states() -> list[State]:
    from farandole import postgres
    from farandole.projections import discover
    from farandole.projections.states import states

    project, settings = opened()
    with postgres.connect(settings, application="farandole projections") as connection:
        return states(connection, discover(project))


def _word(one: State) -> str:
    if one.state != "building" or not one.expected:
        return one.state
    return f"building, {min(99, 100 * (one.folded or 0) // one.expected)} %"
