"""Records of an Avro schema that between them meet every branch, symbol and limit of it, for tests."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from farandole.contracts.evolution.examples import number, text
from farandole.contracts.evolution.resolution import Named

_EDGES: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [True, False],
    "int": [7, 2**31 - 1, -(2**31)],
    "long": [7, 2**63 - 1, -(2**63)],
    "float": [0.5, 2.0**100],
    "double": [0.5, 1 / 3],
    "bytes": [b"ab", b"\xff\xfe"],
    "string": ["ab", "é"],
}

Pair = tuple[Any, bytes]


def edges(node: Any, names: Named, depth: int = 0) -> Iterator[Pair]:
    """(value, encoding) one after the other; of a record each varies one field and keeps the others at their first."""
    if isinstance(node, list):
        deep = depth > 3 and {"type": "null"} in node
        for at, branch in enumerate(node):
            if not deep or branch == {"type": "null"}:
                yield from ((value, number(at) + raw) for value, raw in edges(branch, names, depth))
        return
    node = names.look(node)
    match node["type"]:
        case "enum":
            yield from ((symbol, number(at)) for at, symbol in enumerate(node["symbols"]))
        case "fixed":
            yield b"\x80" * node["size"], b"\x80" * node["size"]
        case "array":
            yield from (
                ([value], number(1) + raw + number(0))
                for value, raw in ([] if depth > 3 else edges(node["items"], names, depth + 1))
            )
            yield [], number(0)
        case "map":
            yield from (
                ({"k": value}, number(1) + text("k") + raw + number(0))
                for value, raw in ([] if depth > 3 else edges(node["values"], names, depth + 1))
            )
            yield {}, number(0)
        case "record":
            yield from _records(node, names, depth)
        case kind:
            yield from ((value, _encoded(kind, value)) for value in _EDGES[kind])


def _records(node: dict[str, Any], names: Named, depth: int) -> Iterator[Pair]:
    each = {field["name"]: list(edges(field["type"], names, depth + 1)) for field in node["fields"]}
    base = {name: pairs[0] for name, pairs in each.items()}
    varied = [base, *({**base, name: pair} for name, pairs in each.items() for pair in pairs[1:])]
    for parts in varied:
        yield {name: value for name, (value, _) in parts.items()}, b"".join(raw for _, raw in parts.values())


def _encoded(kind: str, value: Any) -> bytes:
    match kind:
        case "null":
            return b""
        case "boolean":
            return bytes([value])
        case "int" | "long":
            return number(value)
        case "float" | "double":
            return struct.pack("<f" if kind == "float" else "<d", value)
        case "bytes":
            return number(len(value)) + bytes(value)
    return text(value)


def lost(written: Any, read: Any, kind: Any, names: Named) -> bool:
    """Whether a reader of type `kind` got another value than was written, in what both sides have."""
    if isinstance(kind, list):
        if isinstance(read, float) and isinstance(written, int):  # the first branch that takes it
            kind = [branch for branch in kind if branch in ({"type": "float"}, {"type": "double"})][:1]
        return all(lost(written, read, branch, names) for branch in kind)
    kind = names.look(kind)
    match kind["type"]:
        case "record":
            fields = {field["name"]: field["type"] for field in kind["fields"]}
            return not isinstance(written, dict) or any(
                lost(written[name], read[name], fields[name], names) for name in written.keys() & fields.keys()
            )
        case "array":
            return not isinstance(written, list) or any(
                lost(one, other, kind["items"], names) for one, other in zip(written, read, strict=True)
            )
        case "map":
            return not isinstance(written, dict) or any(lost(written[k], read[k], kind["values"], names) for k in read)
        case "float":
            return not isinstance(written, int | float) or struct.unpack("<f", struct.pack("<f", read))[0] != written
        case "double":
            return bool(read != written)
        case "enum":
            return read not in kind["symbols"]
        case "bytes" | "fixed":
            return bool(read != (written.encode() if isinstance(written, str) else written))
    return bool(read != written)
