"""Which record each one is that was read as another schema wants it: unions of the reader need the name of its own branch.

Avro's library names records by the writer's unions: none where the writer had one record, and the reader has several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: A field that the reader's records have more, so that each is filled in with its own name.
_NAME = "farandole__name"

#: From what the library made to the same with records told by name, as strict reading does; takes the extra fields out.
Tell = Callable[[Any], Any]


def named(kind: Any) -> Any:
    """A reader's schema (JSON-ready), each record of which tells its name. Record names are without namespace."""
    match kind:
        case list():
            return [named(branch) for branch in kind]
        case dict():
            made = kind | {key: named(kind[key]) for key in ("type", "items", "values") if key in kind}
            if isinstance(kind.get("fields"), list):
                name = kind["name"].rpartition(".")[2]
                own = {"name": _NAME, "type": "string", "default": name}
                made["fields"] = [*(field | {"type": named(field["type"])} for field in kind["fields"]), own]
            return made
    return kind


def telling(parsed: Any) -> Tell:
    """What tells the records of values that were read with `named`; `parsed` is the schema in fastavro's form."""
    return _Telling().of(parsed)


class _Telling:
    """One schema's; a name may stand for a record that is being made."""

    def __init__(self) -> None:
        self._records: dict[str, Tell] = {}

    def of(self, kind: Any) -> Tell:
        match kind:
            case str():
                return lambda value: self._records[kind](value) if kind in self._records else value
            case list():
                return self._union(kind)
            case {"type": "record", "name": str(name), "fields": fields}:
                return self._record(name, fields)
            case {"type": "array", "items": items}:
                item = self.of(items)
                return lambda values: [item(value) for value in values]
            case {"type": "map", "values": values}:
                item = self.of(values)
                return lambda held: {key: item(value) for key, value in held.items()}
            case {"type": dict() | list() as inner}:
                return self.of(inner)
        return _as_it_is

    def _record(self, name: str, fields: list[Any]) -> Tell:
        plan: list[tuple[str, Tell]] = []

        def tell(value: Any) -> Any:
            if value.pop(_NAME, None) is None:
                return value  # a default, as it stands in the schema
            for field, inner in plan:
                value[field] = inner(value[field])
            return value

        self._records[name] = tell
        plan += [(field["name"], self.of(field["type"])) for field in fields if field["name"] != _NAME]
        return tell

    def _union(self, branches: list[Any]) -> Tell:
        records: dict[str, tuple[str, Tell]] = {}
        others: dict[type, Tell] = {}
        for branch in branches:
            tell = self.of(branch)
            name = branch if isinstance(branch, str) else branch.get("name", "")
            if name in self._records:
                records[name.rpartition(".")[2]] = name, tell
            elif isinstance(branch, dict) and branch["type"] in _PARTS:
                others[_PARTS[branch["type"]]] = tell
        several = len(records) > 1

        def apply(value: Any) -> Any:
            if type(value) is dict and _NAME in value:
                name, tell = records[value[_NAME]]
                return (name, tell(value)) if several else tell(value)
            other = others.get(type(value))
            return value if other is None else other(value)

        return apply


_PARTS: dict[str, type] = {"array": list, "map": dict}


def _as_it_is(value: Any) -> Any:
    return value
