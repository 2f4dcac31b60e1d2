"""run, projector: the long-running processes."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farandole.errors import ExitCode
from farandole.project import find_project

if TYPE_CHECKING:
    import threading

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


def projector(leash: Leash = False) -> None:
    """Fold the flow's events into Postgres until told to stop. Several projectors share the partitions."""
    import threading

    from farandole import logs
    from farandole.children import hold_leash
    from farandole.projector import run_projector
    from farandole.settings import load_settings

    project = find_project()
    settings = load_settings(project)
    logs.set_up(as_json=settings.log_json)
    stop = threading.Event()
    _on_signals(stop)
    if leash:
        hold_leash()
    run_projector(settings, project, stop)


def _on_signals(stop: threading.Event) -> None:
    """The first signal drains; a second one leaves at once, whatever the database is at."""

    def asked(*_: object) -> None:
        if stop.is_set():
            log.warning("second signal: leaving at once; what was not written is read again")
            os._exit(ExitCode.INTERRUPTED)
        log.info("draining: the batch in hand is finished; a second signal leaves at once")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, asked)
