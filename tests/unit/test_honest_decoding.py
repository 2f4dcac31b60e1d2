"""What is read is what was written, or poison that names the field: no bytes hang a reader, fill its memory or end it."""

from __future__ import annotations

import tracemalloc
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
from farandole.contracts.codec import Writer, contract, decode, writer
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS
from farandole.errors import ConfigurationError, Poison
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
