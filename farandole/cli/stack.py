"""up, down: the local stack from the command line; and a `status` of the stack alone, for `python -m farandole.stack`."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from farandole.errors import ConfigurationError, ExitCode
from farandole.project import require_project

if TYPE_CHECKING:
    from farandole.stack.stack import Stack
    from farandole.stack.status import Endpoints, Status


#: Columns. Where there is no terminal, nothing is cut: the log's path is there to be used.
UNCUT = 1000

Port = Annotated[int | None, typer.Option(min=1, max=65535, help="chosen once and kept when not given")]


def up(
    kafka_port: Port = None,
    postgres_port: Port = None,
    registry: Annotated[
        bool | None,
        typer.Option(
            help="a Schema Registry beside them, or without one again; kept by every later `up` until `down --wipe`",
            show_default="as it was",
        ),
    ] = None,
    registry_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="as the other ports; means --registry as well")
    ] = None,
) -> None:
    """Start the local Kafka and Postgres of this project (or find them running); they stay until `farandole down`."""
    if registry is False and registry_port is not None:
        raise ConfigurationError("--registry-port gives a port to what --no-registry leaves out: choose one of the two")
    screen = Console(stderr=True, highlight=False)
    with screen.status("starting the local stack") as line:

        def say(text: str) -> None:
            screen.print(text, markup=False)
            line.update(text)

        endpoints = _stack(say).up(
            kafka_port=kafka_port, postgres_port=postgres_port, registry=registry, registry_port=registry_port
        )
    screen.print("the local stack is up; `farandole down` stops it", markup=False)
    for address in _addresses(endpoints):
        typer.echo(address)


def status(
    json: Annotated[bool, typer.Option("--json", help="one JSON object, for programs")] = False,
) -> None:
    """Show how the local Kafka and Postgres are, and nothing else. Exit code 1: not up."""
    found = _stack().status()
    if json:
        typer.echo(json_format.dumps(found.as_dict(), indent=2))
    else:
        uncut().print(services(found))
    if not found.running:
        raise typer.Exit(ExitCode.FAILED)


def services(found: Status) -> Group:
    """The services as a table, and their addresses while all run."""
    table = Table("service", "state", "pid", "port", "version", "data", "memory", "log", box=None)
    for one in found.services:
        sizes = (_megabytes(one.data_bytes), _megabytes(one.memory_bytes))
        table.add_row(one.name, one.state, _or_dash(one.pid), _or_dash(one.port), one.version, *sizes, one.log)
    return Group(table, *map(Text, _addresses(found.endpoints) if found.endpoints else ()))


def _addresses(endpoints: Endpoints) -> list[str]:
    """A line each, as a shell or an .env file takes them."""
    return [f"{variable}={address}" for variable, address in endpoints.variables.items()]


def uncut() -> Console:
    """A console that cuts nothing where there is no terminal."""
    view = Console(soft_wrap=True, highlight=False)
    view.width = view.width if view.is_terminal else UNCUT
    return view


def down(
    wipe: Annotated[bool, typer.Option("--wipe", help="remove the data, the ports and the logs as well")] = False,
) -> None:
    """Stop the local Kafka and Postgres of this project. Their data stays for the next `farandole up`."""
    screen = Console(stderr=True, highlight=False)
    _stack(lambda text: screen.print(text, markup=False)).down(wipe=wipe)
    screen.print("the local stack is down" + (", its data removed" if wipe else ""), markup=False)


def _stack(say: Callable[[str], None] = lambda text: None) -> Stack:
    from farandole.stack.stack import Stack

    return Stack(require_project().data, say=say)


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MB"
