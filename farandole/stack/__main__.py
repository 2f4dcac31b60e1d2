"""`python -m farandole.stack up|status|down`: the stack's commands alone."""

from __future__ import annotations

import sys

import typer

from farandole.cli import stack
from farandole.errors import ExitCode, FarandoleError


def main() -> None:
    """Run one command; a FarandoleError is printed as its sentence and ends with its code."""
    app = typer.Typer(add_completion=False, no_args_is_help=True)
    for command in (stack.up, stack.status, stack.down):
        app.command()(command)
    try:
        sys.exit(app(standalone_mode=False))  # what typer.Exit carries is returned then
    except FarandoleError as error:
        typer.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    main()
