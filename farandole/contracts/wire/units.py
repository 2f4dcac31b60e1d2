"""Where a record was written in other units than its reader's: Avro itself would take milliseconds for microseconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from farandole.contracts.avro import last

Named = dict[str, Any]


def disagreement(written: Any, reader: Any) -> str | None:
    """The first field whose number means something else to the reader; None when there is none.

    Both schemas in fastavro's form, with logical types. A writer that says nothing of units is taken for the reader's own
    kind, as Avro has it: code generators drop logical types.
    """
    walk = _Walk()
    return next(walk.compare(written, reader, ""), None)


class _Walk:
    def __init__(self) -> None:
        self._written: Named = {}
        self._read: Named = {}
        self._seen: set[tuple[str, str]] = set()

    def compare(self, written: Any, reader: Any, path: str) -> Iterator[str]:
        written, reader = _resolved(written, self._written), _resolved(reader, self._read)
        if isinstance(written, list) or isinstance(reader, list):
            yield from self._unions(written, reader, path)
        elif isinstance(written, dict) and isinstance(reader, dict):
            yield from self._same(written, reader, path)

    def _unions(self, written: Any, reader: Any, path: str) -> Iterator[str]:
        for one in written if isinstance(written, list) else [written]:
            for other in reader if isinstance(reader, list) else [reader]:
                if _raw(_resolved(one, self._written)) == _raw(_resolved(other, self._read)):
                    yield from self.compare(one, other, path)

    def _same(self, written: Any, reader: Any, path: str) -> Iterator[str]:
        match written.get("type"), reader.get("type"):
            case "record", "record":
                pair = written["name"], reader["name"]
                if pair in self._seen:
                    return
                self._seen.add(pair)
                fields = {field["name"]: field["type"] for field in written["fields"]}
                for field in reader["fields"]:
                    name = next((name for name in (field["name"], *field.get("aliases", ())) if name in fields), None)
                    if name:
                        yield from self.compare(fields[name], field["type"], f"{path}.{field['name']}".lstrip("."))
            case "array", "array":
                yield from self.compare(written["items"], reader["items"], f"{path}[]")
            case "map", "map":
                yield from self.compare(written["values"], reader["values"], f"{path}{{}}")
            case _:
                mine, theirs = _unit(reader), _unit(written)
                if mine and theirs and mine != theirs:
                    yield f"field {path}: written as {theirs}, and read as {mine}"


def _resolved(kind: Any, named: Named) -> Any:
    """The definition a name stands for; definitions are remembered on the way."""
    if isinstance(kind, str):
        return named.get(kind, kind)
    if isinstance(kind, dict):
        if isinstance(kind.get("type"), dict | list):
            return _resolved(kind["type"], named)
        if "name" in kind:
            named.setdefault(kind["name"], kind)
    return kind


def _raw(kind: Any) -> Any:
    """What tells branches apart; integers of either length may be read as one another, and records go by their name."""
    name = kind.get("type") if isinstance(kind, dict) else kind
    return "long" if name == "int" else last(kind["name"]) if name == "record" else name


def _unit(kind: Any) -> str:
    logical = kind.get("logicalType") or kind.get("unit") or ""
    return f"decimal with {kind.get('scale', 0)} digits behind the point" if logical == "decimal" else str(logical)
