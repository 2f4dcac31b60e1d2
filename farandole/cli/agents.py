"""run: agents, until told to stop."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from farandole.interrupts import leaving
from farandole.project import find_project

log = logging.getLogger("farandole.projector")

Leash = Annotated[bool, typer.Option("--leash", hidden=True, help="Drain when stdin ends: the parent process is gone.")]


def run(
    files: Annotated[
        list[Path], typer.Argument(help="Agent files; all of them run in one process.", show_default=False)
    ],
    processes: Annotated[int, typer.Option(min=1, max=256, help="How many such processes.")] = 1,
    leash: Leash = False,
) -> None:
    """Run agents until told to stop. Ctrl-C or SIGTERM drains; a second one leaves at once."""
    if processes > 1:
        from farandole.children import run_several

        raise typer.Exit(run_several(["run", *map(str, files)], processes))
    with leaving():
        from farandole import logs
        from farandole.children import hold_leash
        from farandole.flow import load_agents
        from farandole.settings import load_settings
        from farandole.threads import run_to_its_end
        from farandole.worker import run_agents

        settings = load_settings(find_project(files[0].resolve().parent) or find_project())
        logs.set_up(as_json=settings.log_json)
        agents = load_agents(files)
    if leash:
        hold_leash()
    run_to_its_end(run_agents(settings, list(agents.values())))
