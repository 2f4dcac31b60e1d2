"""Reading Avro's binary encoding: what writers make is read, what none makes is refused with the field it was found in."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farandole.contracts.fields.scalars import Misfit
from farandole.contracts.wire.binary import reader

SIDE = {"type": "enum", "name": "Side", "symbols": ["left", "right"]}
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "n", "type": "int"}]}
OTHER = {"type": "record", "name": "Other", "fields": [{"name": "n", "type": "int"}]}


def parsed(kind: Any) -> Any:
    return fastavro.parse_schema({"type": "record", "name": "jobs.X", "fields": [{"name": "x", "type": kind}]})


def read(kind: Any, data: bytes) -> Any:
    fields, end = reader(parsed(kind))(data, 0)
    assert end == len(data)
    return fields["x"]


HARMFUL: list[tuple[Any, bytes, str]] = [
    ("boolean", b"\x02", "a boolean of 2"),
    ("int", b"\xfe\xff\xff\xff\x1f", "more than 32 bits"),
    ("long", b"\xff" * 9 + b"\x02", "more than 64 bits"),
    ("long", b"\x80" * 10 + b"\x00", "more than 64 bits"),
    ("long", b"\x80", "the bytes end in the middle"),
    ("double", b"\0" * 7, "the bytes end in the middle"),
    ("string", b"\x01", "a length of -1"),
    ("string", b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", "a length of 4611686018427387903 with 0 bytes left"),
    ("string", b"\x06\xed\xa0\xbd", "no UTF-8"),
    ("bytes", b"\x04a", "a length of 2 with 1 bytes left"),
    (SIDE, b"\x01", "symbol -1 of 2"),
    (SIDE, b"\x04", "symbol 2 of 2"),
    (["null", "long"], b"\x01", "branch -1 of 2"),
    (["null", "long"], b"\x04", "branch 2 of 2"),
    (["string", "long"], b"\x03\x02", "branch -2 of 2"),
    ({"type": "array", "items": "long"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", "items with 0 bytes left"),
    ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f\x00", "items with 1 bytes left"),
    ({"type": "array", "items": "double"}, b"\x02" + b"\0" * 7, "the bytes end in the middle"),
    ({"type": "map", "values": "long"}, b"\x01\x01\x02a\x02\x00", "a length of -1"),
    ({"type": "array", "items": INNER}, b"\x02\x80", "the bytes end in the middle"),
]


@pytest.mark.parametrize(("kind", "data", "wrong"), HARMFUL)
def test_bytes_that_no_writer_makes_are_refused_with_their_field(kind: Any, data: bytes, wrong: str) -> None:
    """Case K4."""
    with pytest.raises(Misfit, match=wrong) as caught:
        reader(parsed(kind))(data, 0)
    assert caught.value.path.startswith(".x")


def test_a_text_that_is_cut_short_ends_behind_the_bytes() -> None:
    assert reader(parsed("string"))(b"\x0aabc", 0)[1] == 6


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        ("null", b"", None),
        ("float", b"\0\0\xc0\x3f", 1.5),
        ("long", b"\x80\x00", 0),
        ("long", b"\xff" * 9 + b"\x01", -(2**63)),
        (["null", "long"], b"\x82\x00\x02", 1),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
        ({"type": "array", "items": "long"}, b"\x03\x04\x02\x04\x02\x06\x00", [1, 2, 3]),
        ({"type": "array", "items": "double"}, b"\x01\x10" + b"\0" * 8 + b"\x02" + b"\0" * 8 + b"\x00", [0.0, 0.0]),
        ({"type": "map", "values": SIDE}, b"\x01\x08\x02a\x02\x02\x02b\x00\x00", {"a": "right", "b": "left"}),
        (["null", INNER], b"\x02\x02", {"n": 1}),
        ([INNER, OTHER, "long"], b"\x02\x02", ("jobs.Other", {"n": 1})),
        ([INNER, OTHER, "long"], b"\x04\x02", 1),
    ],
)  # fmt: skip
def test_what_the_specification_allows_is_read(kind: Any, data: bytes, value: Any) -> None:
    """Blocks that tell their size, numbers in more bytes than they need, branches of several records."""
    assert read(kind, data) == value


def test_a_record_may_hold_its_own_kind() -> None:
    schema = fastavro.parse_schema(
        {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    )
    assert reader(schema)(b"\x02\x02\x00", 0) == ({"next": {"next": {"next": None}}}, 3)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=200),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=100),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    match kind:
        case str():
            return VALUES[kind]
        case {"items": items}:
            return st.lists(values(items), max_size=4)
        case _:
            return st.dictionaries(VALUES["string"], values(kind["values"]), max_size=4)


SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(list(VALUES)),
    lambda inner: (
        inner.map(lambda kind: {"type": "array", "items": kind})
        | inner.map(lambda kind: {"type": "map", "values": kind})
    ),
    max_leaves=3,
)


@given(st.data())
def test_what_fastavro_writes_is_read_as_fastavro_reads_it(data: st.DataObject) -> None:
    kind = data.draw(SCHEMAS)
    schema, out = parsed(kind), BytesIO()
    fastavro.schemaless_writer(out, schema, {"x": data.draw(values(kind))})
    written = out.getvalue()
    assert reader(schema)(written, 0) == (fastavro.schemaless_reader(BytesIO(written), schema, None), len(written))
