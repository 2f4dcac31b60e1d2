"""A schema as records are written and read with it: without logical types, and what in it could harm a reader."""

from __future__ import annotations

from typing import Any

from farandole.errors import ConfigurationError


def plain(kind: Any) -> Any:
    """A type without logical types: ids stay strings, times numbers and decimals bytes until they are looked at."""
    match kind:
        case list():
            return [plain(branch) for branch in kind]
        case dict():
            made = {key: value for key, value in kind.items() if key != "logicalType"}
            if made.keys() <= {"type", "unit", "precision", "scale"} and isinstance(made.get("type"), str):
                return made["type"]
            for key in ("type", "items", "values"):
                if key in made:
                    made[key] = plain(made[key])
            if isinstance(made.get("fields"), list):
                made["fields"] = [plain(field) for field in made["fields"]]
            return made
    return kind


class Traits:
    """What a parsed schema (fastavro's form, names in full) means for whoever reads records of it."""

    def __init__(self, parsed: Any) -> None:
        self.recursive = False  #: a record may hold one of its kind, at any depth
        self._weights: dict[str, int | None] = {}
        self._weight(parsed)

    def _weight(self, kind: Any) -> int:
        """The fewest bytes of a value. Raises ConfigurationError for an array whose items may take none."""
        match kind:
            case str():
                return self._named(kind)
            case list():
                for branch in kind:
                    self._weight(branch)
                return 1
            case {"type": "record" | "error", "name": name, "fields": fields}:
                self._weights[name] = None
                weight = sum(self._weight(field["type"]) for field in fields)
                self._weights[name] = weight
                return weight
            case {"type": "array", "items": items}:
                if not self._weight(items):
                    raise ConfigurationError("an array whose items take no bytes: a few bytes could claim billions")
                return 1
            case {"type": "map", "values": values}:
                self._weight(values)
                return 1
            case {"type": "fixed", "name": name, "size": size}:
                if type(size) is not int or size < 0:
                    raise ConfigurationError(f"the size of fixed {name} is {size!r:.60}; expected a number of bytes")
                self._weights[name] = size
                return size
            case {"type": "enum", "name": name}:
                self._weights[name] = 1
                return 1
            case {"type": inner}:
                return self._weight(inner)
        return 1

    def _named(self, name: str) -> int:
        if name == "null":
            return 0
        weight = self._weights.get(name, 1)
        self.recursive |= weight is None
        return 1 if weight is None else weight
