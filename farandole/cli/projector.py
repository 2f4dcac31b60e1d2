"""projector: folds the flow's events into Postgres; what a person decides about it."""

from __future__ import annotations

import logging
import os
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from farandole.cli import gaps
from farandole.cli.agents import Leash
from farandole.cli.contract import Json
from farandole.errors import ExitCode
from farandole.interrupts import leaving
from farandole.project import find_project

if TYPE_CHECKING:
    import threading

log = logging.getLogger("farandole.projector")

projector = typer.Typer()


@projector.callback(invoke_without_command=True)
def fold(context: typer.Context, leash: Leash = False) -> None:
    """Fold the flow's events into Postgres until told to stop. Several projectors share the partitions."""
    if context.invoked_subcommand:
        return
    with leaving():
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


@projector.command("skip-gap")
def skip_gap(
    topic: Annotated[str, typer.Argument(help="Without the namespace.")],
    partition: Annotated[
        int | None, typer.Argument(min=0, help="Default: all of the topic's that stand still.", show_default=False)
    ] = None,
    at: Annotated[str, typer.Option(help="Where to go on: earliest, latest, or an offset.")] = ...,  # type: ignore[assignment]
    json: Json = False,
) -> None:
    """Go on behind a gap: at earliest (all that is there is folded), at latest (it never is), or at an offset.

    A projector that runs takes it up within 15 s. The same as `farandole gaps accept projector`, for one topic.
    """
    from farandole.gaps import PROJECTOR

    gaps.accept(PROJECTOR, topic, partition, at, json=json)


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
