"""The derived schemas: one .avsc an event type beside its class, checked for drift."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from farandole.contracts import codec
from farandole.contracts.avro import full_name
from farandole.contracts.deriving import derive
from farandole.contracts.envelope_fields import Schema
from farandole.flow import RUNTIME_EVENTS, event_classes
from farandole.project import Project


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference between a class and its .avsc file."""

    file: Path
    field: str  #: "" when it is about the file as a whole
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {f'field {self.field!r}: ' if self.field else ''}{self.what}"


def derived(project: Project, flow: str) -> dict[Path, Schema]:
    """What each .avsc of the project should hold: its own event types and the runtime's, part of the contract."""
    schemas = [derive(event, flow) for event in (*event_classes(project), *RUNTIME_EVENTS)]
    return {project.schemas / f"{full_name(schema)}.avsc": schema for schema in schemas}


def write(project: Project, flow: str) -> list[Path]:
    """Write every .avsc that differs and remove derived ones whose class is gone. Returns the files touched."""
    touched: list[Path] = []
    wanted = derived(project, flow)
    project.schemas.mkdir(exist_ok=True)
    for path, schema in wanted.items():
        text = codec.to_json(schema)
        if not path.exists() or path.read_text(encoding="utf-8", errors="replace") != text:
            path.write_text(text, encoding="utf-8")
            touched.append(path)
    for path in _stale(project, wanted):
        path.unlink()
        touched.append(path)
    return touched


def check(project: Project, flow: str) -> list[Drift]:
    """Where the .avsc files differ from the classes, by file and field; [] when they agree."""
    wanted = derived(project, flow)
    drift = [Drift(path, "", "its event class is gone") for path in _stale(project, wanted)]
    for path, schema in wanted.items():
        found = _read(path)
        if found is None:
            drift.append(Drift(path, "", "not written yet" if not path.exists() else "not JSON"))
        elif not _is_record(found):
            drift.append(Drift(path, "", "not an Avro record schema"))
        else:
            drift += [Drift(path, field, what) for field, what in differences(schema, found)]
    return drift


def differences(derived: Schema, found: Schema) -> Iterator[tuple[str, str]]:
    """(field, what) for each place where a schema file differs from its class; field is "" outside the fields."""
    mine = {field["name"]: field for field in derived["fields"]}
    theirs = {field.get("name", "?"): field for field in found.get("fields", [])}
    for name in mine.keys() - theirs.keys():
        yield name, "in the class, not in the file"
    for name in theirs.keys() - mine.keys():
        yield name, "in the file, not in the class"
    for name in mine.keys() & theirs.keys():
        for key in sorted(mine[name].keys() | theirs[name].keys()):
            if mine[name].get(key) != theirs[name].get(key):
                yield (
                    name,
                    f"{key} is {_show(mine[name].get(key))} in the class, {_show(theirs[name].get(key))} in the file",
                )
    if mine.keys() == theirs.keys() and list(mine) != list(theirs):
        yield "", "the fields' order differs"
    for key in sorted((derived.keys() | found.keys()) - {"fields"}):
        if derived.get(key) != found.get(key):
            yield "", f"{key} is {_show(derived.get(key))} in the class, {_show(found.get(key))} in the file"


def _stale(project: Project, wanted: Iterable[Path]) -> list[Path]:
    """Derived files (they name a topic) without a class; a .avsc that someone put there by hand is left alone."""
    files = set(project.schemas.glob("*.avsc")) - set(wanted)
    return sorted(path for path in files if "topic" in (_read(path) or {}))


def _is_record(found: Schema) -> bool:
    fields = found.get("fields", [])
    return isinstance(fields, list) and all(
        isinstance(field, dict) and isinstance(field.get("name", "?"), str) for field in fields
    )


def _read(path: Path) -> Schema | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _show(value: object) -> str:
    return "absent" if value is None else json.dumps(value, ensure_ascii=False)
