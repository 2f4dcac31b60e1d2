"""init: a project to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farandole.cli.console import say


def init(
    name: Annotated[
        Path, typer.Argument(metavar="NAME", help="Of the new folder, and with it of the flow.", show_default=False)
    ],
) -> None:
    """Write a small project of your own: two agents, their events, a projection, tests, a Makefile."""
    from farandole.scaffold import create, flow_name

    for path in create(name.absolute()):
        say(f"wrote {name / path}")
    say("")
    say(f"flow {flow_name(name.absolute().name)!r} is ready:", "bold")
    for command in (f"cd {name}", "make test", "make demo"):
        say(f"  {command}")
