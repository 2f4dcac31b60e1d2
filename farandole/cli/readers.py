"""`projector search` and `projector reader`: what is set up for those who read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from farandole.cli.console import note
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
