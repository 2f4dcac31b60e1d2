"""Avro types as Python annotations and Avro defaults as Python values: the way back from a schema to a class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from farandole.contracts.avro import last
from farandole.contracts.envelope_fields import Schema
from farandole.contracts.teams.python_layout import Unfit, bytes_literal, quoted

#: Avro types, with a logical type behind a colon, and where their Python type comes from.
_PLAIN: dict[str, tuple[str, str]] = {
    "string": ("builtins", "str"),
    "long": ("builtins", "int"),
    "double": ("builtins", "float"),
    "boolean": ("builtins", "bool"),
    "bytes": ("builtins", "bytes"),
    "string:uuid": ("uuid", "UUID"),
    "int:date": ("datetime", "date"),
    "long:timestamp-micros": ("pydantic", "AwareDatetime"),
    "long:time-micros": ("datetime", "time"),
    "long:microseconds": ("datetime", "timedelta"),
}
#: What a class for reading may hold in a wider type: Avro reads the one as the other.
_WIDER = {"int": "long", "float": "double"}

#: The logical types of Avro 1.12.
_TIMES = [f"{kind}-{unit}" for kind in ("timestamp", "local-timestamp") for unit in ("millis", "micros", "nanos")]
_MEANT = frozenset(["decimal", "big-decimal", "uuid", "date", "time-millis", "time-micros", "duration", *_TIMES])

#: Types that values cannot tell apart in Python, in a union.
_FAMILIES = {"int": "numbers", "long": "numbers", "float": "numbers", "double": "numbers"}
_FAMILIES |= {"string": "texts", "enum": "texts", "bytes": "texts", "fixed": "texts"}

_NAMED = ("record", "enum", "fixed", "error")


def named_types(schema: Schema) -> Iterator[Schema]:
    """Every record, enum and fixed that is defined below a record, wherever it stands."""
    for field in schema["fields"]:
        yield from _named_in(field["type"])


def _named_in(kind: Any) -> Iterator[Schema]:
    if isinstance(kind, list):
        for branch in kind:
            yield from _named_in(branch)
    elif isinstance(kind, dict):
        if kind["type"] in _NAMED:
            yield kind
        if kind["type"] in ("record", "error"):
            yield from named_types(kind)
        for key in ("items", "values", "type"):
            if isinstance(kind.get(key), dict | list):
                yield from _named_in(kind[key])


def members(symbols: Iterable[str]) -> dict[str, str]:
    """What an enum's symbols are called in its class: in capitals, which no method of text is called by."""
    found: dict[str, str] = {}
    for symbol in symbols:
        member = symbol.upper().strip("_") or "SYMBOL"
        member = member if member.isidentifier() else f"N{member}"
        while member in found.values():
            member += "_"
        found[symbol] = member
    return found


def outline(kind: Any, *, inner: bool = False) -> Any:
    """A type with names in place of the types defined in it, so that two places that define it can be compared."""
    if isinstance(kind, str):
        return last(kind)
    if isinstance(kind, list):
        return [outline(one, inner=True) for one in kind]
    if kind.get("type") in _NAMED and inner:
        return last(kind["name"])
    return {
        key: outline(one, inner=True) if key in ("type", "items", "values", "fields") else one
        for key, one in kind.items()
    }


class Annotations:
    """Annotations for one module; remembers what must be imported, and asks for the classes of named types.

    Args:
        named: all named types by their short names.
        taken: names of types. What is imported under such a name, or that of a field of the class that is being
            written (`fields`), is imported under another one.
        need: is told the short name of each named type that an annotation uses; returns how to call it.
        view: the classes only read, so that 32-bit numbers may be read as 64-bit ones.
    """

    def __init__(self, named: Mapping[str, Schema], taken: set[str], need: Callable[[str], str], *, view: bool) -> None:
        self.imports: dict[str, set[str]] = {}
        self.fields: set[str] = set()
        self._named, self._taken, self._need, self._view = named, taken, need, view

    def use(self, module: str, name: str) -> str:
        """How to call what a module holds, which is imported from now on."""
        called = self.free(name) if name in self._taken | self.fields else name
        if module != "builtins" or called != name:
            self.imports.setdefault(module, set()).add(name if called == name else f"{name} as {called}")
        return called

    def free(self, name: str) -> str:
        """A name for the module itself that is no type's and no field's."""
        called = f"_{name}"
        while called in self._taken:
            called = f"_{called}"
        return called

    def of(self, kind: Any, path: str, notes: list[str]) -> str:
        """The annotation of an Avro type. `notes` takes what a reader of the class should know. Raises Unfit."""
        if isinstance(kind, list):
            return self._union(kind, path, notes)
        if isinstance(kind, str):
            if last(kind) in self._named:
                return self._of_named(self._named[last(kind)], path)
            return self._plain(kind, None, path, notes)
        inner = kind["type"]
        if inner in _NAMED:
            return self._of_named(kind, path)
        if inner == "array":
            return f"{self.use('builtins', 'list')}[{self.of(kind['items'], path, notes)}]"
        if inner == "map":
            key = self.use("builtins", "str")
            return f"{self.use('builtins', 'dict')}[{key}, {self.of(kind['values'], path, notes)}]"
        if isinstance(inner, dict | list):
            return self.of(inner, path, notes)
        if kind.get("logicalType") == "decimal" and inner == "bytes":
            return self._decimal(kind, path)
        return self._plain(inner, _logical(kind), path, notes)

    def _of_named(self, kind: Schema, path: str) -> str:
        if kind["type"] == "fixed":
            raise Unfit(f"{path}: a fixed of {kind['size']} bytes has no class form here; expected bytes")
        return self._need(last(kind["name"]))

    def _union(self, branches: list[Any], path: str, notes: list[str]) -> str:
        others = [branch for branch in branches if branch != "null"]
        if not others:
            raise Unfit(f"{path}: it is always null, which says nothing; expected a type")
        made = [self.of(branch, path, notes) for branch in others]
        families = [_FAMILIES.get(what, what) for what in map(self._what, others)]
        apart = [family for family in families if family != "record"]
        if len(set(apart)) != len(apart) or {"map", "record"} <= set(families):
            raise Unfit(f"{path}: {' | '.join(made)} cannot be told apart in Python; expected one of them")
        return " | ".join([*made, *(["None"] if len(others) < len(branches) else [])])

    def _what(self, kind: Any) -> str:
        """The Avro type that carries one branch of a union."""
        if isinstance(kind, str):
            return str(self._named[last(kind)]["type"]) if last(kind) in self._named else kind
        return self._what(kind["type"])

    def _plain(self, kind: str, logical: str | None, path: str, notes: list[str]) -> str:
        found = _PLAIN.get(f"{kind}:{logical}") if logical else _PLAIN.get(kind)
        if found:
            return self.use(*found)
        told = f"{kind} ({logical})" if logical else kind
        if self._view and not logical and kind in _WIDER:
            notes.append(f"{kind} in the schema, read as {_WIDER[kind]}")
            return self.use(*_PLAIN[_WIDER[kind]])
        hint = "; a class for reading alone (--view) takes it as a wider type" if kind in _WIDER and not logical else ""
        raise Unfit(f"{path}: {told} has no class form here{hint}")

    def _decimal(self, kind: Schema, path: str) -> str:
        digits, places = kind.get("precision"), kind.get("scale", 0)
        if not isinstance(digits, int) or not isinstance(places, int) or not 0 <= places <= digits:
            raise Unfit(f"{path}: a decimal of precision {digits!r} and scale {places!r} is none that Avro knows")
        field = f"{self.use('pydantic', 'Field')}(max_digits={digits}, decimal_places={places})"
        return f"{self.use('typing', 'Annotated')}[{self.use('decimal', 'Decimal')}, {field}]"

    def default(self, kind: Any, value: Any, path: str) -> str:
        """An Avro default, as it stands in a schema, as Python source. Raises Unfit."""
        try:
            return self._default(kind, value, path)
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError):
            raise Unfit(f"{path}: its default {value!r} is not of its type") from None

    def _default(self, kind: Any, value: Any, path: str) -> str:
        if isinstance(kind, list):  # the default of a union is one of its first branch
            return self.default(kind[0], value, path)
        if value is None:
            return "None"
        if isinstance(kind, str) and last(kind) in self._named:
            kind = self._named[last(kind)]
        plain = kind if isinstance(kind, str) else kind["type"]
        if plain == "array":
            return f"[{', '.join(self.default(kind['items'], one, path) for one in value)}]"
        if plain == "map":
            inner = (f"{quoted(key, path)}: {self.default(kind['values'], one, path)}" for key, one in value.items())
            return f"{{{', '.join(inner)}}}"
        if plain == "enum":
            return f"{self._need(last(kind['name']))}.{members(kind['symbols'])[value]}"
        if plain == "record":
            named = {field["name"]: field["type"] for field in kind["fields"]}
            given = (f"{name}={self.default(named[name], one, path)}" for name, one in value.items() if name in named)
            return f"{self._need(last(kind['name']))}({', '.join(given)})"
        return self._plain_default(kind, plain, value, path)

    def _plain_default(self, kind: Any, plain: Any, value: Any, path: str) -> str:
        match _logical(kind) if isinstance(kind, dict) else None:
            case "uuid":
                return f"{self.use('uuid', 'UUID')}({quoted(value, path)})"
            case "date":
                day = date(1970, 1, 1) + timedelta(days=value)
                return f"{self.use('datetime', 'date')}({day.year}, {day.month}, {day.day})"
            case "time-micros":
                at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
                return f"{self.use('datetime', 'time')}({at.hour}, {at.minute}, {at.second}, {at.microsecond})"
            case "microseconds":
                return f"{self.use('datetime', 'timedelta')}(microseconds={value:d})"
            case "timestamp-micros":
                at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
                parts = f"{at.year}, {at.month}, {at.day}, {at.hour}, {at.minute}, {at.second}, {at.microsecond}"
                return f"{self.use('datetime', 'datetime')}({parts}, tzinfo={self.use('datetime', 'UTC')})"
            case "decimal":
                number = int.from_bytes(value.encode("latin-1"), "big", signed=True)
                return f"{self.use('decimal', 'Decimal')}({quoted(str(Decimal(number).scaleb(-kind.get('scale', 0))), path)})"
        if plain == "bytes":
            return bytes_literal(value.encode("latin-1"))
        if plain in ("double", "float"):
            return repr(float(value))
        return quoted(value, path) if isinstance(value, str) else repr(value)


def _logical(kind: Schema) -> str | None:
    """What a plain type stands for, where Avro or we give it a meaning: other logical types are to be ignored."""
    if kind["type"] == "long" and kind.get("unit") == "microseconds":
        return "microseconds"  # a span of time: Avro's own has months, and no sign
    found = kind.get("logicalType")
    return str(found) if found in _MEANT else None
