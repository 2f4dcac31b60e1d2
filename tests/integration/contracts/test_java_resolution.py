"""What an older or newer reader makes of an event: ours and Java's resolve the same values out of the same bytes."""

from __future__ import annotations

from typing import Any

import pytest

from farandole.contracts.codec import decode, writer
from farandole.contracts.wire.raw import plain
from farandole.errors import Poison
from tests.java.avro import JavaAvro, JavaAvroError
from tests.java.json_encoding import Encoding

Schema = dict[str, Any]


def record(*fields: Schema, name: str = "Made", **more: Any) -> Schema:
    return {"type": "record", "name": name, "namespace": "jobs", "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> Schema:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, name: str = "Mood", **more: Any) -> Schema:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def inner(*fields: Schema, name: str = "Inner", **more: Any) -> Schema:
    return {"type": "record", "name": name, "fields": list(fields), **more}


N, S = field("n", "long"), field("s", "string")
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
ARRAY, MAP = {"type": "array", "items": "string"}, {"type": "map", "values": "long"}

#: What was written, in Avro's JSON encoding, its schema, and the reader's.
READABLE: dict[str, tuple[Any, Schema, Schema]] = {
    "a field that is gone": ({"n": 1, "s": "x"}, record(N, S), record(N)),
    "a field in the middle that is gone": (
        {"n": 1, "gone": {"a": 5}, "s": "x"}, record(N, field("gone", MAP), S), record(N, S),
    ),
    "fields in another order": ({"n": 1, "s": "x"}, record(N, S), record(S, N)),
    "a new optional field": ({"n": 1}, record(N), record(N, field("new", ["null", "string"], default=None))),
    "a new optional field that is not null": ({"n": 1}, record(N), record(N, field("new", ["string", "null"], default="é\0"))),
    "new fields of each kind": (
        {"n": 1},
        record(N),
        record(
            N, field("b", "boolean", default=True), field("i", "int", default=-3), field("d", "double", default=2),
            field("bytes", "bytes", default="\u00ff\0"), field("money", MONEY, default="\u0004\u00d2"),
            field("array", ARRAY, default=["a"]), field("map", MAP, default={"a": 1}), field("none", ARRAY, default=[]),
            field("mood", enum("calm", "cross"), default="cross"), field("mood_again", ["Mood", "null"], default="calm"),
            field("inner", inner(field("x", "long"), field("y", ["null", "long"], default=None)), default={"x": 7, "y": None}),
            field("day", {"type": "int", "logicalType": "date"}, default=20_000),
        ),
    ),
    "a symbol that is not known yet": (
        {"mood": "angry"},
        record(field("mood", enum("calm", "angry"))),
        record(field("mood", enum("calm", "cross", default="calm"))),
    ),
    "symbols in another order": (
        {"mood": "calm"}, record(field("mood", enum("calm", "cross"))), record(field("mood", enum("cross", "calm"))),
    ),
    "an unknown symbol in an optional field": (
        {"mood": {"jobs.Mood": "angry"}},
        record(field("mood", ["null", enum("calm", "angry")])),
        record(field("mood", ["null", enum("calm", default="calm")])),
    ),
    "an unknown symbol in a list": (
        {"moods": ["angry", "calm"]},
        record(field("moods", {"type": "array", "items": enum("calm", "angry")})),
        record(field("moods", {"type": "array", "items": enum("calm", default="calm")})),
    ),
    "a record that was renamed": ({"n": 1}, record(N, name="Old"), record(N, name="New", aliases=["Old"])),
    "a record that came from another flow": (
        {"n": 1}, record(N, name="Old") | {"namespace": "mails"}, record(N, name="New", aliases=["mails.Old"]),
    ),
    "a field that was renamed": ({"n": 1}, record(N), record(field("number", "long", aliases=["n"]))),
    "an inner record that was renamed": (
        {"i": {"n": 1}}, record(field("i", inner(N))), record(field("i", inner(N, name="Part", aliases=["Inner"]))),
    ),
    "a larger number": (
        {"a": 1, "b": 2, "c": 3}, record(field("a", "int"), field("b", "long"), field("c", "int")),
        record(field("a", "long"), field("b", "double"), field("c", "double")),
    ),
    "a field that became optional": ({"n": 1}, record(N), record(field("n", ["null", "long"]))),
    "a field that is no longer optional, filled": ({"n": {"long": 1}}, record(field("n", ["null", "long"])), record(N)),
    "a union in another order": (
        {"n": {"long": 1}}, record(field("n", ["null", "long"])), record(field("n", ["long", "null"])),
    ),
    "an inner record that grew and shrank": (
        {"l": [{"n": 1, "s": "x"}, {"n": 2, "s": "y"}]},
        record(field("l", {"type": "array", "items": inner(N, S)})),
        record(field("l", {"type": "array", "items": inner(N, field("t", "long", default=5))})),
    ),
    "an optional inner record that grew": (
        {"i": {"jobs.Inner": {"n": 1}}},
        record(field("i", ["null", inner(N)])),
        record(field("i", ["null", inner(N, field("t", ["null", "long"], default=None))])),
    ),
    "one of several records": (
        {"p": {"jobs.Card": {"n": 1}}},
        record(field("p", [inner(N, name="Cash"), inner(N, name="Card")])),
        record(field("p", [inner(N, field("t", "long", default=5), name="Card"), inner(N, name="Cash")])),
    ),
    "text as bytes and back": (
        {"s": "é", "b": "ab"}, record(S, field("b", "bytes")), record(field("s", "bytes"), field("b", "string")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", READABLE)
def test_another_reader_understands_what_javas_would(java_avro: JavaAvro, change: str) -> None:
    written, old, new = READABLE[change]
    value = java_avro.write(old, written)
    theirs, fingerprint = java_avro.read(old, value, reader=new)
    assert fingerprint == writer(old).fingerprint
    ours = decode(value, writer(old), writer(new))
    encoding = Encoding(plain(new))
    assert {one["name"]: encoding.value(one["type"], ours[one["name"]]) for one in plain(new)["fields"]} == theirs


UNREADABLE: dict[str, tuple[Any, Schema, Schema]] = {
    "a symbol that is not known": (
        {"mood": "angry"}, record(field("mood", enum("calm", "angry"))), record(field("mood", enum("calm"))),
    ),
    "a field that is missing": ({"n": 1}, record(N), record(N, S)),
    "a smaller number": ({"n": 1}, record(N), record(field("n", "int"))),
    "a field that is no longer optional, empty": ({"n": None}, record(field("n", ["null", "long"])), record(N)),
    "another type": ({"n": 1}, record(N), record(field("n", "boolean"))),
}  # fmt: skip


@pytest.mark.parametrize("change", UNREADABLE)
def test_what_java_cannot_resolve_is_poison(java_avro: JavaAvro, change: str) -> None:
    written, old, new = UNREADABLE[change]
    value = java_avro.write(old, written)
    with pytest.raises(JavaAvroError):
        java_avro.read(old, value, reader=new)
    with pytest.raises(Poison) as caught:
        decode(value, writer(old), writer(new))
    assert caught.value.cause == "undecodable"
