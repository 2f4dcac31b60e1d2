"""Examples of a schema: the same values and bytes every time, made without the library that reads them."""

from __future__ import annotations

import struct
import uuid
from typing import Any

from farandole.contracts.envelope_fields import Schema
from farandole.contracts.evolution.resolution import Named
from farandole.errors import ConfigurationError

#: What a value of a logical type may be, where its plain type alone would not do; as on the wire.
_LOGICAL: dict[str, int] = {
    "date": 20_454,  # 2026-01-01
    "time-millis": 43_200_000,
    "time-micros": 43_200_000_000,
    "timestamp-millis": 1_767_225_600_000,
    "timestamp-micros": 1_767_225_600_000_000,
    "timestamp-nanos": 1_767_225_600_000_000_000,
    "local-timestamp-millis": 1_767_225_600_000,
    "local-timestamp-micros": 1_767_225_600_000_000,
    "local-timestamp-nanos": 1_767_225_600_000_000_000,
}

Example = tuple[
    Any, bytes
]  #: a value as it lies on the wire (ids are strings, times numbers, bytes bytes), its encoding


def examples(schema: Schema) -> list[Example]:
    """As many as the largest union has branches, at least two: the first is full, of each optional one is null.

    Raises ConfigurationError for a type that holds itself without an end.
    """
    names = Named(schema)
    count = max([2, *map(len, _unions(names.root, names, set()))])
    return [Maker(names, number).make(names.root, "", ()) for number in range(count)]


def _unions(node: Any, names: Named, seen: set[int]) -> list[list[Any]]:
    """Every union that the schema holds."""
    if isinstance(node, list):
        return [node, *(union for branch in node for union in _unions(branch, names, seen))]
    node = names.look(node)
    if id(node) in seen:
        return []
    seen.add(id(node))
    inner = [node.get("items"), node.get("values"), *(field["type"] for field in node.get("fields", ()))]
    return [union for one in inner if one is not None for union in _unions(one, names, seen)]


class Maker:
    """Makes the example of one number; `path` is the field's, `inside` the records around it."""

    def __init__(self, names: Named, number: int) -> None:
        self.names, self.number = names, number

    def make(self, node: Any, path: str, inside: tuple[str, ...]) -> Example:
        if isinstance(node, list):
            return self.branch(node, path, inside)
        node = self.names.look(node)
        match node["type"]:
            case "record":
                return self.record(node, path, inside)
            case "array":
                return self.block(node["items"], path, inside, key=None)
            case "map":
                return self.block(node["values"], path, inside, key="key")
            case "enum":
                at = self.number % len(node["symbols"])
                return node["symbols"][at], number(at)
            case "fixed":
                raw = (1).to_bytes(node["size"], "big") if node["size"] else b""
                return raw, raw
        return self.plain(node["type"], node.get("logicalType", ""), path)

    def record(self, node: Schema, path: str, inside: tuple[str, ...]) -> Example:
        if node["name"] in inside:
            raise ConfigurationError(f"{node['name']}.{path}: the type holds itself without an end")
        around = (*inside, node["name"])
        parts = {f["name"]: self.make(f["type"], f"{path}.{f['name']}".lstrip("."), around) for f in node["fields"]}
        return {name: value for name, (value, _) in parts.items()}, b"".join(raw for _, raw in parts.values())

    def branch(self, branches: list[Any], path: str, inside: tuple[str, ...]) -> Example:
        """Branches take turns, null last; one that would go round in circles is left out."""
        ends = [branch for branch in branches if not self.circular(branch, inside)]
        order = sorted(ends, key=lambda branch: branch == {"type": "null"})
        if not order:
            raise ConfigurationError(f"{path}: the type holds itself without an end")
        chosen = order[self.number % len(order)]
        value, raw = self.make(chosen, path, inside)
        return value, number(branches.index(chosen)) + raw

    def block(self, item: Any, path: str, inside: tuple[str, ...], *, key: str | None) -> Example:
        """A list or map of one; empty in every other example, and where it would go round in circles."""
        if self.number % 2 or self.circular(item, inside):
            return ([] if key is None else {}), number(0)
        value, raw = self.make(item, path, inside)
        return ([value] if key is None else {key: value}), number(1) + (text(key) if key else b"") + raw + number(0)

    def circular(self, node: Any, inside: tuple[str, ...]) -> bool:
        return isinstance(node, dict) and node.get("ref") in inside

    def plain(self, kind: str, logical: str, path: str) -> Example:
        at = self.number
        match kind:
            case "null":
                return None, b""
            case "boolean":
                return at % 2 == 0, bytes([at % 2 == 0])
            case "int" | "long":
                value = _LOGICAL.get(logical, 42) + at
                return value, number(value)
            case "float" | "double":
                return 0.5 + at, struct.pack("<f" if kind == "float" else "<d", 0.5 + at)
            case "bytes":
                raw = bytes([1]) if logical == "decimal" else bytes([0, 255, at])
                return raw, number(len(raw)) + raw
        words = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{path} {at}")) if logical == "uuid" else f"{path} é {at}"
        return words, text(words)


def number(value: int) -> bytes:
    """Avro's int and long: zigzag, seven bits a byte, the lowest first.

    >>> [number(value).hex() for value in (0, -1, 1, 64, 2**63 - 1)]
    ['00', '01', '02', '8001', 'feffffffffffffffff01']
    """
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def text(value: str) -> bytes:
    """Avro's string: its length in bytes, then UTF-8."""
    raw = value.encode()
    return number(len(raw)) + raw
