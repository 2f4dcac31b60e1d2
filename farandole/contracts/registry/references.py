"""A schema that refers to others made into one that stands by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from farandole.contracts.avro import PRIMITIVES, full
from farandole.contracts.envelope_fields import Schema

_NAMED = frozenset(("record", "error", "enum", "fixed"))


def inlined(schema: Any, others: Iterable[Any]) -> Any:
    """`schema` with the named types of `others` written out where they are first used, and by name after that.

    All are JSON-ready Avro. A name that nobody defines stays as it is: whoever parses the schema names it.
    """
    known: dict[str, Schema] = {}
    for other in others:
        _collect(other, "", known)
    return _Inlining(known).of(schema, "")


def _collect(schema: Any, space: str, known: dict[str, Schema]) -> None:
    """Every named type that `schema` defines, by full name. The first definition of a name counts."""
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, space, known)
    elif isinstance(schema, dict):
        kind = schema.get("type")
        if kind in _NAMED:
            name = _full(schema, space)
            space = name.rpartition(".")[0]
            known.setdefault(name, _named(schema, name))
        for inner in _inside(schema):
            _collect(inner, space, known)


def _inside(schema: Schema) -> list[Any]:
    """The schemas right inside a schema that is an object."""
    match schema.get("type"):
        case "record" | "error":
            return [field.get("type") for field in schema.get("fields", [])]
        case "array":
            return [schema.get("items")]
        case "map":
            return [schema.get("values")]
        case dict() | list() as inner:
            return [inner]
        case _:
            return []


class _Inlining:
    """One pass over a schema; remembers which types it has met, since Avro defines each once."""

    def __init__(self, known: dict[str, Schema]) -> None:
        self._known = known
        self._defined: set[str] = set()

    def of(self, schema: Any, space: str) -> Any:
        """`schema`, which stands in the namespace `space`."""
        if isinstance(schema, list):
            return [self.of(branch, space) for branch in schema]
        if isinstance(schema, str):
            return self._named(schema, space)
        if not isinstance(schema, dict):
            return schema
        kind = schema.get("type")
        if kind in _NAMED:
            return self._definition(schema, space)
        if kind == "array":
            return schema | {"items": self.of(schema.get("items"), space)}
        if kind == "map":
            return schema | {"values": self.of(schema.get("values"), space)}
        return schema if isinstance(kind, str) and kind in PRIMITIVES else schema | {"type": self.of(kind, space)}

    def _named(self, name: str, space: str) -> Any:
        if name in PRIMITIVES:
            return name
        meant = full(name, space)
        if meant not in self._known and name in self._known:
            meant = name  # of no namespace
        if meant in self._defined or meant not in self._known:
            return name
        return self._definition(self._known[meant], "")

    def _definition(self, schema: Schema, space: str) -> Any:
        name = _full(schema, space)
        if name in self._defined:
            return name
        self._defined.add(name)
        inner = name.rpartition(".")[0]
        made = _named(schema, name)
        if "fields" in schema:
            made["fields"] = [field | {"type": self.of(field.get("type"), inner)} for field in schema["fields"]]
        return made


def _full(schema: Schema, space: str) -> str:
    return full(str(schema.get("name", "")), schema.get("namespace", space) or "")


def _named(schema: Schema, known_as: str) -> Schema:
    """The definition with its full name spelt out, so that it means the same wherever it is put."""
    space, _, name = known_as.rpartition(".")
    return {"type": schema["type"], "name": name, "namespace": space} | {
        key: value for key, value in schema.items() if key not in ("type", "name", "namespace")
    }
