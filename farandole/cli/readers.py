"""`projector search` and `projector reader`: what is set up for those who read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from farandole.cli.console import note
from farandole.errors import ExitCode
from farandole.project import find_project


class Switch(StrEnum):
    """Of the index."""

    ON = "on"
    OFF = "off"


def search(switch: Annotated[Switch, typer.Argument(help="Make the index, or drop it.", show_default=False)]) -> None:
    """An index for `farandole jobs --search`. Projectors and readers go on meanwhile; each event costs more with it."""
    from farandole import search_index
    from farandole.settings import load_settings

    settings = load_settings(find_project())
    if switch is Switch.ON:
        search_index.switch_on(settings, lambda table: note(f"indexing {table}", "dim"))
        note("payloads are indexed for search")
    elif search_index.switch_off(settings):
        note("the index was dropped; searches look through the newest jobs")
    else:
        note("there was no index")


def reader(
    name: Annotated[str, typer.Argument(help="Of the role.", show_default=False)],
    sql: Annotated[bool, typer.Option("--sql", help="Only print the SQL; change nothing.")] = False,
) -> None:
    """A role of Postgres that reads jobs and journeys and changes nothing, made if it is not there.

    Where the database's user may not make it, the SQL is printed, to be run by an administrator.
    """
    from farandole import reader_role
    from farandole.settings import load_settings

    settings = load_settings(find_project())
    made = reader_role.make(settings, name, only_tell=sql)
    if not made.done:
        print(*(f"{statement};" for statement in made.statements), sep="\n")  # noqa: T201  SQL for a pipe
        if sql:
            return
        note("the database's user may not do this; have an administrator run the SQL above in this database", "yellow")
        raise typer.Exit(ExitCode.FAILED)
    if made.password:
        print(reader_role.url(settings, name, made.password))  # noqa: T201  for a pipe
        note(f"the role {name} was made; its password is in the URL above, and is kept nowhere else")
    else:
        note(f"the role {name} may read schema {settings.schema_name}")
