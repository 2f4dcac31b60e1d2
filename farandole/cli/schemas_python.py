"""schemas python: event classes for another project, written from schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from farandole.cli.console import note
from farandole.errors import ConfigurationError, ExitCode, FarandoleError


def schemas_python(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE.avsc…",
            help="Schemas, or folders of them: of released versions the last one counts.",
            show_default=False,
        ),
    ] = None,
    from_log: Annotated[
        list[str] | None,
        typer.Option("--from-log", help="Full name of an event whose schema is on the broker; may be repeated."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The file to write; default: the terminal.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Of events whose schema names none.")] = None,
    view: Annotated[
        bool, typer.Option("--view", help="Classes that only read; what a class cannot hold is left out.")
    ] = False,
) -> None:
    """Write typed event classes from Avro schemas, for a project that has no classes of them. Files need no project."""
    from farandole.contracts.teams.python_source import HEADER, source

    found = [*(_read(path) for path in _avsc(files or [])), *_on_the_broker(from_log or [])]
    if not found:
        raise FarandoleError("no schema given; expected .avsc files, folders, or --from-log NAME", ExitCode.USAGE)
    text = source(found, topic=topic, view=view)
    for schema in found:
        _remark(schema, topic)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        if out.exists() and not out.read_text(encoding="utf-8").startswith(HEADER):
            raise FarandoleError(
                f"{out} is there, and was not written by this command; name another file", ExitCode.USAGE
            )
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FarandoleError(f"{out} cannot be written: {error.strerror}", ExitCode.USAGE) from error
    note(f"wrote {out}: {len(found)} event class{'es' * (len(found) > 1)}")


def _avsc(paths: list[Path]) -> list[Path]:
    """The files; of a folder those in it, of released versions the last one of each event."""
    found: list[Path] = []
    for path in paths:
        here = _in_folder(path) if path.is_dir() else [path]
        if not here:
            raise FarandoleError(f"{path}: no .avsc in this folder", ExitCode.NOT_FOUND)
        found += here
    return found


def _on_the_broker(names: list[str]) -> list[dict[str, Any]]:
    """The latest schemas of these names in the schema topic."""
    if not names:
        return []
    from farandole.contracts.schema_log import SchemaLog
    from farandole.settings import load_settings

    log = SchemaLog(load_settings())
    log.read_on()
    found = {name: log.latest(name) for name in names}
    missing = [name for name, schema in found.items() if schema is None]
    if missing:
        there = ", ".join(log.names()) or "nothing"
        raise FarandoleError(f"no schema of {missing[0]} in topic {log.topic}; there is: {there}", ExitCode.NOT_FOUND)
    return [schema.schema for schema in found.values() if schema]


def _in_folder(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.avsc"))
    if not files:
        return [file for inner in sorted(folder.iterdir()) if inner.is_dir() for file in _in_folder(inner)]
    if all(file.stem.isdecimal() for file in files):
        files = [max(files, key=lambda file: int(file.stem))]
    return [file for file in files if not _of_the_runtime(file)]


def _of_the_runtime(file: Path) -> bool:
    """Whether it is one of the events that every flow has: they come with farandole, and two classes of one name cannot be."""
    from farandole.flow import RUNTIME_EVENTS

    schema = _read(file)
    return (schema["name"], schema.get("topic")) in {
        (event.avro_name(), f"{schema.get('namespace')}{event.__event__.topic}") for event in RUNTIME_EVENTS
    }


def _read(path: Path) -> dict[str, Any]:
    from farandole.contracts import codec

    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise ConfigurationError("not an Avro record schema, which an event has")
        codec.writer(schema)
    except FileNotFoundError:
        raise FarandoleError(f"{path}: no such file", ExitCode.NOT_FOUND) from None
    except OSError as error:
        raise FarandoleError(f"{path} cannot be read: {error.strerror}", ExitCode.NOT_FOUND) from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: not JSON: {error}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return schema


def _remark(schema: dict[str, Any], topic: str | None) -> None:
    """Agents know events by their full names, which begin with the flow's."""
    space, _, name = (f"{schema.get('namespace', '')}." * ("." not in schema["name"]) + schema["name"]).rpartition(".")
    flow = str(schema.get("topic") or topic).partition(".")[0]
    if space.strip(".") != flow:
        note(
            f"{schema['name']}: records written as {space.strip('.') or '(no namespace)'}.{name} are not read as this "
            f"class, whose name is {flow}.{name}: it is an event of flow {flow} of the same form",
            "yellow",
        )
