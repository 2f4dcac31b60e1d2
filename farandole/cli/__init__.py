"""The command line: which commands there are, and how each of them ends."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from farandole.cli import (
    agents,
    config,
    contract,
    costs,
    dead,
    demo,
    dev,
    doctor,
    gaps,
    graph,
    init,
    jobs,
    parked,
    projections,
    projector,
    schemas,
    stack,
    status,
    steps,
    submit,
)
from farandole.cli.console import complain
from farandole.errors import ExitCode, FarandoleError

#: 128 + SIGPIPE, as a shell reports it: whoever read the output has seen enough.
PIPE_CLOSED = 141

EPILOG = "Exit codes: " + " · ".join(f"{code.value} {code.name.lower()}" for code in ExitCode)


class _Commands(TyperGroup):
    """Ends a command with the exit code of its error, in one line and without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except FarandoleError as error:
            complain(str(error))
            raise typer.Exit(error.exit_code) from error
        except BrokenPipeError:
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # the interpreter flushes once more at its end
            raise typer.Exit(PIPE_CLOSED) from None
        except Exception as error:
            if not _is_outage(error):
                raise
            complain((str(error).splitlines() or [type(error).__name__])[0])
            raise typer.Exit(ExitCode.UNREACHABLE) from error


def _is_outage(error: Exception) -> bool:
    """Whether broker or database went away in the middle; asked of the modules that are loaded, none is loaded for it."""
    loaded = [sys.modules[name] for name in ("farandole.kafka", "farandole.postgres") if name in sys.modules]
    return any(module.is_outage(error) for module in loaded)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    epilog=EPILOG,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="LLM agents as an event-sourced choreography on Kafka, with a queryable job state in Postgres.",
)

START, STACK, RUN, READ, CHECK = "Start here", "Local stack", "Run", "Jobs", "Contract and checks"
for panel, commands in {
    START: (init.init, demo.demo, dev.dev),
    STACK: (stack.up, status.status, stack.down),
    RUN: (agents.run, submit.submit),
    READ: (jobs.jobs, jobs.job, jobs.journey, costs.costs),
    CHECK: (doctor.doctor, graph.graph, config.config, contract.topics, contract.migrate),
}.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)  # type: ignore[type-var]  # a join of many signatures
app.add_typer(dead.dead, name="dead", rich_help_panel=READ)
app.add_typer(parked.parked, name="parked", rich_help_panel=READ)
app.add_typer(steps.steps, name="steps", rich_help_panel=READ)
app.add_typer(schemas.schemas, name="schemas", rich_help_panel=CHECK)
app.add_typer(gaps.gaps, name="gaps", rich_help_panel=CHECK)
app.add_typer(projections.projections, name="projections", rich_help_panel=CHECK)
app.add_typer(projector.projector, name="projector", rich_help_panel=RUN)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"farandole {version('farandole')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and end.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line; called by the entry point, `farandole/__main__.py`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # data may hold what the terminal's encoding does not
    app()
