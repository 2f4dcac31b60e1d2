"""Avro's JSON encoding of Python values, by the specification alone: what Java's library reads and prints.

Written without a look at the codec, which would repeat its own mistakes.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import BaseModel

_MICROSECOND = timedelta(microseconds=1)


def event_json(schema: Mapping[str, Any], envelope: Mapping[str, Any], payload: BaseModel) -> dict[str, Any]:
    """The whole event; `envelope` in the wire's strings and integers."""
    encoding = Encoding(schema)
    return {
        field["name"]: encoding.value(
            field["type"],
            envelope[field["name"]] if field["name"] in envelope else _part(payload, field["name"]),
        )
        for field in schema["fields"]
    }


class Encoding:
    """One schema with the types it names."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._namespace = schema.get("namespace", "")
        self._named: dict[str, Mapping[str, Any]] = {}
        self._learn(schema)

    def value(self, schema: Any, value: Any) -> Any:
        """`value` of the type `schema`, JSON-ready."""
        if isinstance(schema, list):
            return self._branch(schema, value)
        schema = self._known(schema)
        if isinstance(schema, str):
            return _plain(schema, {}, value)
        match schema["type"]:
            case "array":
                return [self.value(schema["items"], one) for one in value]
            case "map":
                return {key: self.value(schema["values"], one) for key, one in value.items()}
            case "record":
                return {
                    field["name"]: self.value(field["type"], _part(value, field["name"])) for field in schema["fields"]
                }
            case "enum":
                return value.value if isinstance(value, enum.Enum) else value
            case kind:
                return _plain(kind, schema, value)

    def _branch(self, union: list[Any], value: Any) -> Any:
        """A union's value under the name of its branch; null has none."""
        if value is None:
            return None
        if isinstance(value, tuple) and value and isinstance(value[-1], dict):  # a record of several, as it was decoded
            return {value[0]: self.value(self._known(value[0].rpartition(".")[2]), value[1])}
        branch = next(one for one in union if self._fits(one, value))
        schema = self._known(branch)
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in ("record", "enum", "fixed"):
            kind = f"{self._namespace}.{schema['name']}".lstrip(".")
        return {kind: self.value(branch, value)}

    def _fits(self, branch: Any, value: Any) -> bool:
        schema = self._known(branch)
        more = {"type": schema} if isinstance(schema, str) else schema
        kind = more["type"]
        if kind == "record":
            return type(value).__name__ in (more["name"], "dict")
        if kind == "enum":
            symbol = value.value if isinstance(value, enum.Enum) else value
            return symbol in more["symbols"]
        return type(value) in _PYTHON.get((kind, more.get("logicalType")), ()) or (
            "unit" in more and isinstance(value, timedelta)
        )

    def _known(self, schema: Any) -> Any:
        """A named type for its name."""
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def _learn(self, schema: Any) -> None:
        if isinstance(schema, list):
            for branch in schema:
                self._learn(branch)
        elif isinstance(schema, Mapping):
            if "name" in schema:
                self._named[schema["name"]] = schema
            for field in schema.get("fields", ()):
                self._learn(field["type"])
            for part in ("items", "values"):
                self._learn(schema.get(part))


def _part(model: BaseModel | dict[str, Any], wire: str) -> Any:
    """A field by its name in the schema: the alias, where it has one. Of a model, or of the fields that were decoded."""
    if isinstance(model, dict):
        return model[wire]
    names = {info.alias or name: name for name, info in type(model).model_fields.items()}
    return getattr(model, names[wire])


#: The Python types of a branch's values, by Avro type and logical type.
_PYTHON: dict[tuple[str, str | None], tuple[type, ...]] = {
    ("string", None): (str,),
    ("string", "uuid"): (UUID, str),  # an envelope's ids are strings
    ("boolean", None): (bool,),
    ("int", None): (int,),
    ("long", None): (int,),
    ("double", None): (float,),
    ("bytes", None): (bytes,),
    ("bytes", "decimal"): (Decimal,),
    ("int", "date"): (date,),
    ("long", "time-micros"): (time,),
    ("long", "timestamp-micros"): (datetime,),
    ("array", None): (list, tuple, set, frozenset),
    ("map", None): (dict,),
}


def _plain(kind: str, schema: Mapping[str, Any], value: Any) -> Any:
    """A value without parts: logical types as the numbers, strings and bytes that carry them."""
    match value:
        case datetime():
            return (value - datetime(1970, 1, 1, tzinfo=UTC)) // _MICROSECOND
        case date():
            return (value - date(1970, 1, 1)).days
        case time():
            since_midnight = timedelta(
                hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
            )
            return since_midnight // _MICROSECOND
        case timedelta():
            return value // _MICROSECOND
        case UUID():
            return str(value)
        case Decimal():
            number = int(value.scaleb(schema["scale"]))
            size = (number if number >= 0 else -number - 1).bit_length() // 8 + 1
            return number.to_bytes(size, "big", signed=True).decode("latin-1")
        case bytes():
            return value.decode("latin-1")
        case str() | int() | float() | None:
            return value
    raise TypeError(f"no JSON for {value!r} as {kind}")
