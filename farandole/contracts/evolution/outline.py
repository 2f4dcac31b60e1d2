"""A schema as rows, one a field, and two schemas field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from farandole.contracts.avro import last
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS, Schema
from farandole.contracts.evolution.resolution import Named, told


@dataclass(frozen=True, slots=True)
class Row:
    """One field, or one inside a record that a field holds."""

    field: str  #: its path, such as `items[].count`
    type: str  #: in words; an enum with its symbols
    default: str  #: as JSON; "" when the field is required
    personal: bool
    doc: str
    envelope: bool


@dataclass(frozen=True, slots=True)
class Change:
    """What differs between two schemas in one field, or in what they say of the event: "" stands for nothing."""

    field: str
    what: str  #: added, removed, or what of the field differs: type, default, personal, or the property's name
    old: str
    new: str


def rows(schema: Schema) -> list[Row]:
    """Every field, the envelope's first; a named type is laid out where it is first met."""
    names = Named(schema)
    return list(_rows(names.look(names.root), names, "", set()))


def _rows(record: Schema, names: Named, above: str, seen: set[str]) -> Iterator[Row]:
    seen.add(record["name"])
    for field in record["fields"]:
        path, suffix = f"{above}{field['name']}", ""
        yield Row(
            path,
            _kind(field["type"], names),
            json.dumps(field["default"], ensure_ascii=False) if "default" in field else "",
            bool(field.get("personal")),
            field.get("doc", ""),
            not above and field["name"] in ENVELOPE_FIELDS,
        )
        for suffix, inner in _records(field["type"], names, ""):
            if inner["name"] not in seen:
                yield from _rows(inner, names, f"{path}{suffix}.", seen)


def _records(node: Any, names: Named, suffix: str) -> Iterator[tuple[str, Schema]]:
    """The records that a type holds, each with what leads to it."""
    if isinstance(node, list):
        several = len([branch for branch in node if branch != {"type": "null"}]) > 1
        for branch in node:
            for inner, record in _records(branch, names, suffix):
                yield f"{inner}<{last(record['name'])}>" if several else inner, record
        return
    node = names.look(node)
    match node["type"]:
        case "record":
            yield suffix, node
        case "array":
            yield from _records(node["items"], names, f"{suffix}[]")
        case "map":
            yield from _records(node["values"], names, f"{suffix}{{}}")


def _kind(node: Any, names: Named) -> str:
    symbols = "; ".join(_enums(node, names))
    return told(node, names) + (f": {symbols}" if symbols else "")


def _enums(node: Any, names: Named) -> Iterator[str]:
    for branch in node if isinstance(node, list) else [node]:
        found = names.look(branch)
        if found["type"] == "enum":
            rest = f", others are read as {found['default']}" if "default" in found else ""
            yield f"{', '.join(found['symbols'])}{rest}"
        elif found["type"] in ("array", "map"):
            yield from _enums(found.get("items", found.get("values")), names)


def changes(old: Schema, new: Schema) -> list[Change]:
    """What differs, texts for people aside; [] when nothing does."""
    before, after = ({row.field: row for row in rows(schema)} for schema in (old, new))
    found = [Change("", name, _shown(old.get(name)), _shown(new.get(name))) for name in _properties(old, new)]
    for path in dict.fromkeys([*before, *after]):
        if path not in after:
            found.append(Change(path, "removed", before[path].type, ""))
        elif path not in before:
            default = after[path].default
            found.append(Change(path, "added", "", after[path].type + (f" = {default}" if default else "")))
        else:
            was, now = asdict(before[path]), asdict(after[path])
            found += [
                Change(path, name, _shown(was[name]), _shown(now[name]))
                for name in ("type", "default", "personal")
                if was[name] != now[name]
            ]
    return found


def _properties(old: Schema, new: Schema) -> list[str]:
    names = dict.fromkeys([*old, *new])
    return [name for name in names if name not in ("fields", "doc", "type") and old.get(name) != new.get(name)]


def _shown(value: Any) -> str:
    return "" if value in (None, False) else "yes" if value is True else str(value)
