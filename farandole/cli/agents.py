"""run, projector: the long-running processes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farandole.project import find_project, require_project

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
    import asyncio

    from farandole import logs
    from farandole.children import hold_leash
    from farandole.flow import load_agents
    from farandole.settings import load_settings
    from farandole.worker import run_agents

    settings = load_settings(find_project(files[0].resolve().parent) or find_project())
    logs.set_up(as_json=settings.log_json)
    agents = load_agents(files)
    if leash:
        hold_leash()
    asyncio.run(run_agents(settings, list(agents.values())))


def projector(leash: Leash = False) -> None:
    """Fold the flow's events into Postgres until told to stop. Several projectors share the partitions."""
    import signal
    import threading

    from farandole import logs
    from farandole.children import hold_leash
    from farandole.projector import run_projector
    from farandole.settings import load_settings

    project = require_project()
    settings = load_settings(project)
    logs.set_up(as_json=settings.log_json)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if leash:
        hold_leash()
    run_projector(settings, project, stop)
