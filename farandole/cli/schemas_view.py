"""schemas show, schemas diff: an event type field by field, and what changed between two versions of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from farandole.cli.console import cell, note, say, show, show_json, table
from farandole.cli.contract import Json, opened
from farandole.errors import ExitCode, FarandoleError

if TYPE_CHECKING:
    from farandole.contracts.envelope_fields import Schema
    from farandole.contracts.evolution.breaks import Break
    from farandole.contracts.evolution.history import History

Name = Annotated[str, typer.Argument(help="An event type, with or without the flow's name.", show_default=False)]


def schemas_show(
    name: Name,
    version: Annotated[int | None, typer.Option("--version", help="A released version.", show_default=False)] = None,
    released: Annotated[bool, typer.Option("--released", help="The last released version.")] = False,
    json: Json = False,
) -> None:
    """One event type, field by field, as its class says; as JSON its .avsc."""
    from farandole.contracts.evolution.outline import rows

    full, now, history = _found(name)
    number = version if version is not None else history.last if released else None
    schema = _pick(full, now, history, number)
    if json:
        show_json(schema)
        return
    words = [f"{word} {schema[word]}" for word in ("topic", "stage", "terminal") if schema.get(word)]
    words += [word for word in ("blocks", "ingest") if schema.get(word)]
    aliases = schema.get("aliases", ())
    words += [f"called {', '.join(aliases)} before"] if aliases else []
    say(f"{full}  {_named(number)}: {', '.join(words)}", "bold")
    view = table("field", "type", "default", "personal", "what it is")
    for row in rows(schema):
        style = "dim" if row.envelope else ""
        personal = "personal" if row.personal else ""
        view.add_row(*(cell(text, style) for text in (row.field, row.type, row.default, personal, row.doc)))
    show(view)
    say(_released(full, history), "dim")


def schemas_diff(
    name: Name,
    old: Annotated[int | None, typer.Argument(help="Default: the last release.", show_default=False)] = None,
    new: Annotated[int | None, typer.Argument(help="Default: the class.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """What changed between two versions of an event type, and whom it breaks."""
    from farandole.contracts.evolution.breaks import problems
    from farandole.contracts.evolution.history import NEXT
    from farandole.contracts.evolution.outline import changes

    full, now, history = _found(name)
    if not history.versions:
        raise FarandoleError(f"{full} was not released yet: `farandole schemas release`", ExitCode.NOT_FOUND)
    if history.name != full and old is None:
        note(f"{full} was not released yet; its last release was {history.name} version {history.last}")
    first = history.last if old is None else old
    before, after = _pick(full, now, history, first), _pick(full, now, history, new)
    found, told_of = changes(before, after), problems(before, after)
    names = (_named(first), NEXT if new is None else _named(new))
    if json:
        rows = [{**asdict(one), "breaks": one.who(*names)} for one in told_of]
        show_json({"event": full, "old": first, "new": new, "changes": [asdict(c) for c in found], "problems": rows})
        return
    say(f"{full}: from {_named(first)} to {_named(new)}", "bold")
    if not found:
        say("no difference, texts for people aside")
        return
    view = table("field", "what", "was", "is")
    for one in found:
        view.add_row(cell(one.field or "(the event)"), cell(one.what), cell(one.old), cell(one.new))
    show(view)
    for problem in told_of:
        for line in told(full, problem, problem.who(*names), ()):
            say(line, "" if line.startswith(" ") else "yellow")
    if all(problem.warning for problem in told_of):
        say("nobody breaks: readers and writers of both may run at the same time", "green")


def told(event: str, problem: Break, breaks: Sequence[str], versions: Sequence[str]) -> list[str]:
    """A break or a warning in lines: what changed; who breaks, indented; what to do instead."""
    what = f"{event}{f' field {problem.field!r}' if problem.field else ''}: {problem.what}"
    if problem.warning:
        since = f" (version {', '.join(versions)})" if versions else ""
        return [f"note: {what}{since}: {problem.instead}"]
    return [what, *(f"  {sentence}" for sentence in breaks), f"  instead: {problem.instead}"]


def _found(name: str) -> tuple[str, Schema | None, History]:
    """(full name, the class's schema, what was released). Raises FarandoleError when there is neither."""
    from farandole.contracts import files
    from farandole.contracts.avro import earlier_names, full_name
    from farandole.contracts.evolution import releases
    from farandole.contracts.evolution.history import History

    project, settings = opened()
    full = name if "." in name else f"{settings.flow}.{name}"
    classes = {full_name(schema): schema for schema in files.derived(project, settings.flow).values()}
    known = releases.histories(project)
    if full not in classes and full not in known:
        there = ", ".join(sorted(classes.keys() | known.keys()))
        raise FarandoleError(f"no event type {name!r}; there is: {there}", ExitCode.NOT_FOUND)
    schema = classes.get(full)
    names = [full, *(earlier_names(schema)[::-1] if schema else ())]
    return full, schema, next((known[each] for each in names if each in known), History(full, {}))


def _pick(full: str, now: Schema | None, history: History, number: int | None) -> Schema:
    """The version of that number, or the class's (None)."""
    schema = now if number is None else history.versions.get(number)
    if schema is None:
        what = "the class is gone" if number is None else f"version {number} was not released"
        raise FarandoleError(f"{full}: {what}; {_released(full, history)}", ExitCode.NOT_FOUND)
    return schema


def _named(number: int | None) -> str:
    return "the class" if number is None else f"version {number}"


def _released(full: str, history: History) -> str:
    if not history.versions:
        return "no version was released yet"
    retired = f"; readers up to version {history.retired} are retired" if history.retired else ""
    name = "" if history.name == full else f" as {history.name}"
    return f"released{name}: {', '.join(map(str, history.versions))}{retired}"
