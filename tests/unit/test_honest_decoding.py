"""What is read is what was written, or poison that names the field: no bytes hang a reader, fill its memory or end it."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from io import BytesIO
from typing import Annotated, Any, Literal
from uuid import UUID

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AwareDatetime, Field

from farandole import Event, Unknown
from farandole.contracts.codec import Writer, contract, decode, json_form, writer
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS
from farandole.errors import ConfigurationError, Poison
from farandole.projector.body import jsonb_text
from farandole.projector.rows import _body
from tests.unit.test_contracts import envelope
from tests.unit.test_field_kinds import Card, Node, Strict, Transfer


class Slip(Strict):
    day: date
    spans: list[timedelta] = []


class Read(Event, topic="jobs.read"):
    at: AwareDatetime
    clock: time
    price: Annotated[Decimal, Field(max_digits=4, decimal_places=2)]
    ref: UUID
    slips: list[Slip] = []
    paid: Card | Transfer | None = None
    by_day: dict[str, Slip] = {}
    tree: Node | None = None
    mood: Annotated[Literal["calm", "cross"], Unknown("calm")] = "calm"
    flags: list[bool] = []
    raw: bytes = b""


def read(**fields: Any) -> Read:
    given: dict[str, Any] = {
        "at": datetime(2026, 1, 2, tzinfo=UTC), "clock": time(3, 4, 5, 6), "price": Decimal("1.25"), "ref": UUID(int=3),
    }  # fmt: skip
    return Read(**(given | fields))


FULL = read(
    slips=[Slip(day=date(2026, 1, 2), spans=[-timedelta(seconds=1.5)])], paid=Transfer(number="1"), raw=b"\xff",
    by_day={"a": Slip(day=date(1, 1, 1))}, tree=Node(name="a", children=[Node(name="b")]), flags=[True],
)  # fmt: skip
MADE = contract(Read, "jobs")


def forged(**fields: Any) -> bytes:
    """Bytes as any Avro library could write them, of values that no Python type holds."""
    out = BytesIO()
    out.write(MADE.header)
    plain = decode(MADE.encode(envelope(), FULL), MADE.writer)
    fastavro.schemaless_writer(out, MADE.writer.parsed, plain | fields)
    return out.getvalue()


def test_forged_bytes_without_a_fault_are_read() -> None:
    assert MADE.read(decode(forged(), MADE.writer)) == FULL


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"at": 253_402_300_800_000_000},
            "field at: expected an instant of the years 1 to 9999, found 253402300800000000 µs",
        ),
        ({"clock": 86_400_000_000}, "field clock: expected a time of one day"),
        ({"clock": -1}, "field clock: expected a time of one day"),
        ({"price": b"\x7f\xff"}, "field price: expected a Decimal of at most 4 digits"),
        ({"price": b"\x7f" * 10_000}, "field price: expected a Decimal of at most 4 digits"),
        ({"ref": "no-uuid"}, "field ref: Input should be a valid UUID"),
        ({"slips": [{"day": 0, "spans": []}, {"day": 2**31 - 1, "spans": []}]}, "field slips[1].day: expected a date"),
        ({"by_day": {"x": {"day": -(2**31), "spans": []}}}, "field by_day['x'].day: expected a date"),
    ],
)
def test_a_value_that_no_python_type_holds_is_poison_that_names_the_field(
    fields: dict[str, Any], expected: str
) -> None:
    """Case K4: the year 10000."""
    with pytest.raises(Poison) as caught:
        MADE.read(decode(forged(**fields), MADE.writer))
    assert caught.value.cause == "invalid"
    assert str(caught.value).startswith(f"jobs.Read: {expected}")


def test_a_branch_is_read_by_its_name_also_from_a_schema_with_other_branches() -> None:
    """Case S2: records that look alike."""

    class Newer(Event, topic="jobs.read", name="Paid"):
        paid: Transfer | Card | None

    class Older(Event, topic="jobs.read", name="Paid"):
        paid: Card | Transfer

    newer, older = contract(Newer, "jobs"), contract(Older, "jobs")
    for paid in (Card(number="1"), Transfer(number="1")):
        value = newer.encode(envelope(), Newer(paid=paid))
        assert older.read(decode(value, newer.writer, older.writer)) == Older(paid=paid)


def test_numbers_in_other_units_than_the_readers_are_refused() -> None:
    class Timed(Event, topic="jobs.timed"):
        at: list[AwareDatetime | None]
        price: Annotated[Decimal, Field(max_digits=4, decimal_places=2)]

    reader = contract(Timed, "jobs").writer

    def foreign(at: Any, price: Any) -> Writer:
        fields = [field for field in reader.schema["fields"] if field["name"] in ENVELOPE_FIELDS]
        fields += [{"name": "at", "type": {"type": "array", "items": [at, "null"]}}, {"name": "price", "type": price}]
        return writer(reader.schema | {"fields": fields})

    micros = {"type": "long", "logicalType": "timestamp-micros"}
    cents: dict[str, Any] = {"type": "bytes", "logicalType": "decimal"}
    cents |= {"precision": 4, "scale": 2}
    for at, price, expected in (
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            cents,
            r"field at\[\]: written as timestamp-millis, and read as",
        ),
        (micros, cents | {"scale": 3}, "field price: written as decimal with 3 digits behind the point, and read as"),
    ):
        with pytest.raises(Poison, match=expected):
            decode(b"", foreign(at, price), reader)
    same = foreign("long", "bytes")  # code generators drop logical types
    with pytest.raises(Poison, match="not a jobs"):
        decode(b"", same, reader)


@given(st.binary(max_size=120), st.integers(0, 400), st.integers(0, 40))
def test_bytes_that_were_changed_are_an_event_or_poison(noise: bytes, at: int, cut: int) -> None:
    value = bytearray(forged())
    at = 10 + at % (len(value) - 10)
    value[at : at + cut] = noise
    try:
        MADE.read(decode(bytes(value), MADE.writer))
    except Poison as poison:
        assert poison.cause in ("undecodable", "invalid")


def test_a_few_bytes_that_claim_billions_of_items_cost_no_memory() -> None:
    body = forged()[10:]
    claims = [b"\xfe\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\x01\x01", b"\x01\x02"]
    tracemalloc.start()
    for claim in claims:
        for at in range(len(body)):
            with pytest.raises(Poison):
                MADE.read(decode(MADE.header + body[:at] + claim, MADE.writer))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000


@pytest.mark.parametrize("levels", [300, 1_000, 100_000])
def test_models_nested_without_end_are_poison_and_do_not_end_the_process(levels: int) -> None:
    class Deep(Event, topic="jobs.deep"):
        tree: Node | None

    class Deeper(Event, topic="jobs.deep", name="Deep"):
        tree: Node | None
        more: str = ""

    made, other = contract(Deep, "jobs"), contract(Deeper, "jobs")
    head = made.encode(envelope(), Deep(tree=None))[:-1]
    value = head + b"\x02\x02a\x00" * levels + b"\0"
    for reader in (made, other):
        with pytest.raises(Poison):
            reader.read(decode(value, made.writer, reader.writer))


def test_models_as_deep_as_a_reader_gets_are_told_or_left_out_but_do_not_stop_the_projector() -> None:
    class Deep(Event, topic="jobs.deep"):
        tree: Node | None

    made = contract(Deep, "jobs")
    head = made.encode(envelope(), Deep(tree=None))[:-1]
    told_of = set()
    for levels in range(1, 1_000, 20):
        with suppress(Poison):
            fields = decode(head + b"\x02\x02a\x00" * levels + b"\0", made.writer)
            body, changed = _body({"tree": fields["tree"]}, json_form(made.writer))
            assert (body is None) == changed
            told_of.add(body is not None)
    assert True in told_of


def test_an_array_whose_items_take_no_bytes_is_refused_in_any_schema() -> None:
    for items in ("null", {"type": "record", "name": "E", "fields": []}, {"type": "fixed", "name": "F", "size": 0}):
        schema = {
            "type": "record",
            "name": "jobs.X",
            "fields": [{"name": "x", "type": {"type": "array", "items": items}}],
        }
        with pytest.raises(ConfigurationError, match="items take no bytes"):
            writer(schema)
    nested: Any = "null"
    for _ in range(3_000):
        nested = {"type": "array", "items": [nested]}
    with pytest.raises(ConfigurationError, match="not an Avro schema"):
        writer({"type": "record", "name": "jobs.X", "fields": [{"name": "x", "type": nested}]})


def told(made: Writer, fields: dict[str, Any]) -> tuple[Any, int]:
    lost: list[Any] = []
    payload = {name: value for name, value in fields.items() if name not in ENVELOPE_FIELDS}
    text, _ = jsonb_text(json_form(made)(payload, lost))
    return json.loads(text or b"null"), len(lost)


def test_the_projector_tells_every_kind_of_value_in_json_without_the_class() -> None:
    body, lost = told(MADE.writer, decode(MADE.encode(envelope(), FULL), MADE.writer))
    assert body == {
        "at": "2026-01-02T00:00:00+00:00", "clock": "03:04:05.000006", "price": "1.25", "ref": str(UUID(int=3)),
        "slips": [{"day": "2026-01-02", "spans": ["PT-1.5S"]}], "paid": {"kind": "transfer", "number": "1"},
        "by_day": {"a": {"day": "0001-01-01", "spans": []}}, "mood": "calm", "flags": [True], "raw": "/w==",
        "tree": {"name": "a", "children": [{"name": "b", "children": [], "left": None}], "left": None},
    }  # fmt: skip
    assert not lost


def test_what_no_calendar_has_is_null_for_the_projector_and_flagged() -> None:
    fields = {"at": 2**62, "clock": -1, "by_day": {"a": {"day": 2**31 - 1, "spans": []}}}
    body, lost = told(MADE.writer, decode(forged(**fields), MADE.writer))
    assert (body["at"], body["clock"], body["by_day"]["a"]["day"], lost) == (None, None, None, 3)


LOGICAL: list[tuple[dict[str, Any], Any, Any]] = [
    ({"type": "long", "logicalType": "timestamp-millis"}, 1, "1970-01-01T00:00:00.001000+00:00"),
    ({"type": "long", "logicalType": "timestamp-nanos"}, 1_000, "1970-01-01T00:00:00.000001+00:00"),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, 1, "1970-01-01T00:00:00.000001"),
    ({"type": "int", "logicalType": "time-millis"}, 1, "00:00:00.001000"),
    (
        {"type": "fixed", "name": "D", "size": 2, "logicalType": "decimal", "precision": 4, "scale": 1},
        b"\xff\xff",
        "-0.1",
    ),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 0}, b"\x05", "5"),
    ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, UUID(int=5).bytes, str(UUID(int=5))),
    (
        {"type": "fixed", "name": "P", "size": 12, "logicalType": "duration"},
        b"\1\0\0\0\2\0\0\0\3\0\0\0",
        "P1M2DT0.003S",
    ),
    ({"type": "long", "unit": "microseconds"}, 1_000_000, "PT1S"),
    ({"type": "string", "logicalType": "made-up"}, "x", "x"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), LOGICAL)
def test_strangers_kinds_are_told_too_in_unions_and_under_their_names(kind: Any, value: Any, expected: Any) -> None:
    again = kind.get("name", kind)
    fields = [
        {"name": "x", "type": kind},
        {"name": "y", "type": ["null", again]},
        {"name": "z", "type": {"type": "array", "items": again}},
    ]
    made = writer({"type": "record", "name": "X", "fields": fields})
    assert told(made, {"x": value, "y": value, "z": [value]}) == ({"x": expected, "y": expected, "z": [expected]}, 0)


def test_an_unknown_word_without_a_declared_one_is_poison() -> None:
    class Wrote(Event, topic="jobs.mood", name="Felt"):
        mood: Literal["calm", "cross", "glad"]

    class Reads(Event, topic="jobs.mood", name="Felt"):
        mood: Literal["calm", "cross"]

    class Knows(Event, topic="jobs.mood", name="Felt"):
        mood: Annotated[Literal["calm", "cross"], Unknown("cross")]

    wrote, reads, knows = contract(Wrote, "jobs"), contract(Reads, "jobs"), contract(Knows, "jobs")
    value = wrote.encode(envelope(), Wrote(mood="glad"))
    with pytest.raises(Poison, match="glad"):
        decode(value, wrote.writer, reads.writer)
    assert knows.read(decode(value, wrote.writer, knows.writer)) == Knows(mood="cross")


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        ({"aliases": 5}, "aliases is 5"),
        ({"aliases": ["Old", 5]}, "aliases is"),
        ({"aliases": None}, "aliases is None"),
        ({"fields": [{"name": "a", "type": {"type": "fixed", "name": "F", "size": -1}}]}, "size of fixed jobs.F is -1"),
        (
            {"fields": [{"name": "a", "type": {"type": "fixed", "name": "F", "size": 2.5}}]},
            "size of fixed jobs.F is 2.5",
        ),
        ({"fields": [{"name": "\ud800", "type": "int"}]}, "surrogates"),
        ({"name": "\ud800"}, "surrogates"),
    ],
)
def test_a_schema_that_no_avro_library_takes_is_refused_and_ends_no_reader(odd: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{named}"):
        writer({"type": "record", "name": "Odd", "namespace": "jobs", "fields": []} | odd)
