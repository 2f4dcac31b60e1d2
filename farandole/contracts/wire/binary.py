"""Avro's binary encoding read strictly: bytes that no writer makes are refused, where fastavro takes some of them in silence.

A negative index of a union or an enum would count from the end, a boolean of 2 would be true, an int might have more than
32 bits. Readers in other languages refuse these or understand something else, and an event must mean the same to all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from farandole.contracts.fields.scalars import Misfit
from farandole.contracts.wire.unpacking import UNPACK, Read, count_of, integer, string


def reader(schema: Any) -> Read:
    """The reader of a schema in fastavro's parsed form (names in full, definitions at their first use).

    Logical types are left alone: ids are strings, times numbers, decimals bytes. A record that was one of several in a
    union comes as (full name, fields).
    """
    return _Compiler().of(schema)


def compiler(named: Iterable[Any]) -> Callable[[Any], Read]:
    """What makes readers of types that may refer to these named ones."""
    made = _Compiler()
    for schema in named:
        made.of(schema)
    return made.of


class _Compiler:
    """Builds readers; remembers those of named types."""

    def __init__(self) -> None:
        self._named: dict[str, Read] = {}
        self._records: set[str] = set()

    def of(self, schema: Any) -> Read:
        match schema:
            case str():
                return UNPACK[schema] if schema in UNPACK else self._reference(schema)
            case list():
                return self._union(schema)
            case {"type": "record" | "error"}:
                return self._record(schema)
            case {"type": "enum"}:
                return self._keep(schema, enum(schema["symbols"]))
            case {"type": "fixed"}:
                return self._keep(schema, fixed(schema["size"]))
            case {"type": "array", "items": items}:
                return _doubles if items == "double" else array(self.of(items))
            case {"type": "map", "values": values}:
                return map_of(self.of(values))
            case _:
                return self.of(schema["type"])

    def _keep(self, schema: Any, read: Read) -> Read:
        self._named[schema["name"]] = read
        return read

    def _reference(self, name: str) -> Read:
        """A named type; one that is being built (it holds itself) is looked up when it is read."""

        def later(data: bytes, at: int) -> tuple[Any, int]:
            return self._named[name](data, at)

        return self._named.get(name, later)

    def _record(self, schema: Any) -> Read:
        self._records.add(schema["name"])
        return self._keep(schema, fields([(field["name"], self.of(field["type"])) for field in schema["fields"]]))

    def _union(self, union: list[Any]) -> Read:
        branches = [self.of(branch) for branch in union]
        records = [self._record_name(branch) for branch in union]
        if sum(name is not None for name in records) > 1:
            branches = [
                read if name is None else tagged(name, read) for name, read in zip(records, branches, strict=True)
            ]
        read = choice(branches)
        return _optional(branches[1], read) if len(branches) == 2 and union[0] == "null" else read

    def _record_name(self, branch: Any) -> str | None:
        """The full name of a record, or None of another type."""
        name = branch if isinstance(branch, str) else branch.get("name", "")
        return name if name in self._records else None


def fields(plan: list[tuple[str, Read]]) -> Read:
    """A record's fields, in the order in which they lie."""

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        made = {}
        name = ""
        try:
            for name, field in plan:
                made[name], at = field(data, at)
        except Misfit as misfit:
            raise misfit.within(f".{name}") from None
        except (IndexError, struct.error):
            raise Misfit("the bytes end in the middle").within(f".{name}") from None
        except UnicodeDecodeError as error:
            raise Misfit(f"no UTF-8: {error.reason}").within(f".{name}") from None
        return made, at

    return read


def choice(branches: list[Read]) -> Read:
    """One of several types, by its place."""
    count = len(branches)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        index, at = integer(data, at)
        if not 0 <= index < count:
            raise Misfit(f"branch {index} of {count}")
        return branches[index](data, at)

    return read


def tagged(name: str, read: Read) -> Read:
    """A record that was one of several."""

    def named(data: bytes, at: int) -> tuple[tuple[str, Any], int]:
        value, at = read(data, at)
        return (name, value), at

    return named


def _optional(value: Read, other: Read) -> Read:
    """A union of null and one type, quickly; `other` reads its index when that is none of 0 and 1 in one byte."""

    def read(data: bytes, at: int) -> tuple[Any, int]:
        index = data[at]
        if index == 0:
            return None, at + 1
        return value(data, at + 1) if index == 2 else other(data, at)

    return read


def enum(symbols: list[str]) -> Read:
    """A word, by its place."""
    count = len(symbols)

    def read(data: bytes, at: int) -> tuple[str, int]:
        index, at = integer(data, at)
        if not 0 <= index < count:
            raise Misfit(f"symbol {index} of {count}")
        return symbols[index], at

    return read


def fixed(size: int) -> Read:
    """So many bytes."""

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        return data[at : at + size], at + size

    return read


def array(item: Read) -> Read:
    """Items in blocks."""

    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        made: list[Any] = []
        count, at = count_of(data, at)
        while count:
            for _ in range(count):
                value, at = item(data, at)
                made.append(value)
            count, at = count_of(data, at)
        return made, at

    return read


def _doubles(data: bytes, at: int) -> tuple[list[float], int]:
    """An array of doubles at once: an embedding has thousands."""
    made: list[float] = []
    count, at = count_of(data, at)
    while count:
        made += struct.unpack_from(f"<{count}d", data, at)
        count, at = count_of(data, at + 8 * count)
    return made, at


def map_of(item: Read) -> Read:
    """Texts and values in blocks."""

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        made: dict[str, Any] = {}
        count, at = count_of(data, at)
        while count:
            for _ in range(count):
                key, at = string(data, at)
                made[key], at = item(data, at)
            count, at = count_of(data, at)
        return made, at

    return read
