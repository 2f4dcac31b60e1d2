"""Apache Avro's own Java library and ours agree on schemas, values and bytes, in both directions."""

from __future__ import annotations

import json
from datetime import date, time, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from farandole import Event, ids
from farandole.contracts.codec import Contract, contract, decode, writer
from farandole.contracts.deriving import derive
from farandole.envelope import Emitter, begin, check, follow
from farandole.errors import Poison
from farandole.event import JobDeadLettered, JobDiscarded, JobFailed, JobRedriven
from schemas.jobs import Acted, Classified, Done, Enriched, Submitted
from tests.java.avro import JavaAvro, JavaAvroError
from tests.java.json_encoding import event_json
from tests.strategies import instances

EVENTS = [Submitted, Classified, Enriched, Acted, Done, JobFailed, JobDeadLettered, JobRedriven, JobDiscarded]


class Mood(StrEnum):
    __unknown__ = "calm"

    CALM = "calm"
    CROSS = "cross"


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Item(Strict):
    name: str
    count: int = 1
    bought_on: date | None = None


class Card(Strict):
    kind: Literal["card"] = "card"
    number: str


class Transfer(Strict):
    kind: Literal["transfer"] = "transfer"
    number: str


class Node(Strict):
    name: str
    children: list[Node] = []


Money = Annotated[Decimal, Field(max_digits=20, decimal_places=2)]


class Everything(Event, topic="jobs.everything", stage="everything"):
    """One field of each kind."""

    text: str
    number: int
    few: int = Field(3, ge=0, le=200)
    share: float
    vector: list[float]
    flag: bool
    raw: bytes
    ref: UUID
    day: date
    at: AwareDatetime
    clock: time
    span: timedelta
    price: Money
    prices: dict[str, Money | None]
    mood: Mood
    kind: Literal["a", "b"]
    items: list[Item]
    pages: tuple[bool, ...]
    counts: dict[str, int]
    nested: dict[str, list[Item | None]]
    tree: Node
    paid: Annotated[Card | Transfer, Field(discriminator="kind")]
    paid_before: list[Card | Transfer | None] = []
    several: str | AwareDatetime | bool | list[int] | None
    maybe: str | None = None
    maybe_ref: UUID | None = None
    maybe_mood: Mood | None = Mood.CROSS
    item: Item | None = None
    level: int | None = 3


class Fragile(Event, topic="jobs.fragile"):
    """Short, and what can be wrong in few bytes."""

    flags: list[bool]
    mood: Mood
    number: int
    share: float
    text: str
    counts: dict[str, int]
    maybe: int | None
    paid: Card | Transfer | str


TRACE = ids.new_trace_id()
FIRST = begin(TRACE, Emitter("client"), "jobs.Submitted", tenant="Zoë & Co")
#: With and without the optional fields.
ENVELOPES = [FIRST, follow([FIRST | {"scope_id": TRACE, "part": 2, "parts": 70_000}], Emitter("split", "2"), "x.Y", 0)]


def both_agree(java: JavaAvro, made: Contract, envelope: dict[str, Any], payload: Event) -> None:
    expected = event_json(made.writer.schema, envelope, payload)
    value = made.encode(envelope, payload)
    assert java.read(made.writer.schema, value) == (expected, made.writer.fingerprint), "Java reads ours"
    fields = decode(java.write(made.writer.schema, expected), made.writer)
    assert made.read(fields) == payload, "we read Java's"
    assert {name: fields[name] for name in envelope} == envelope


@pytest.mark.parametrize("kind", EVENTS)
@settings(max_examples=8)
@given(data=st.data(), envelope=st.sampled_from(ENVELOPES))
def test_java_reads_any_event_of_the_flow_as_we_wrote_it_and_we_read_what_java_writes(
    java_avro: JavaAvro, kind: type[Event], data: st.DataObject, envelope: dict[str, Any]
) -> None:
    both_agree(java_avro, contract(kind, "jobs"), envelope, data.draw(instances(kind)))


@settings(max_examples=40)
@given(payload=instances(Everything), envelope=st.sampled_from(ENVELOPES))
def test_java_reads_every_kind_of_field_as_we_wrote_it_and_we_read_what_java_writes(
    java_avro: JavaAvro, payload: Everything, envelope: dict[str, Any]
) -> None:
    both_agree(java_avro, contract(Everything, "jobs"), envelope, payload)


def test_java_has_our_fingerprint_for_every_schema_of_the_flow(java_avro: JavaAvro) -> None:
    files = sorted(Path("schemas").glob("*.avsc"))
    assert len(files) == len(EVENTS)
    for file in files:
        schema = json.loads(file.read_text(encoding="utf-8"))
        assert java_avro.fingerprint(schema) == writer(schema).fingerprint, file


@pytest.mark.parametrize(
    "field",
    [
        {"type": "int", "default": 1, "doc": "of what ¬ counts \U0001f600", "order": "descending", "aliases": ["old"]},
        {"type": {"type": "fixed", "name": "Hash", "size": 16, "namespace": "other.team"}},
        {"type": {"type": "enum", "name": "far.Side", "symbols": ["L", "R"], "default": "L"}},
        {
            "type": [
                "null",
                {"type": "record", "name": "Inner", "fields": [{"name": "again", "type": ["null", "Inner"]}]},
            ]
        },
        {"type": {"type": "array", "items": {"type": "map", "values": {"type": "long", "logicalType": "time-micros"}}}},
    ],
)
@pytest.mark.parametrize("namespace", ["jobs", "deep.er", None])
def test_java_has_our_fingerprint_for_schemas_of_others(
    java_avro: JavaAvro, field: dict[str, Any], namespace: str | None
) -> None:
    schema: dict[str, Any] = {"type": "record", "name": "Theirs", "fields": [{"name": "x", **field}], "topic": "t"}
    if namespace:
        schema["namespace"] = namespace
    assert java_avro.fingerprint(schema) == writer(schema).fingerprint


@settings(max_examples=150)
@given(payload=instances(Fragile), data=st.data())
def test_what_we_take_of_damaged_bytes_java_takes_and_understands_the_same(
    java_avro: JavaAvro, payload: Fragile, data: st.DataObject
) -> None:
    """Case K4: bytes that are not what their schema says."""
    made = contract(Fragile, "jobs")
    value = made.encode(ENVELOPES[1], payload)
    at = data.draw(st.integers(len(made.header), len(value) - 1), "at")
    value = (
        value[:at] + data.draw(st.binary(max_size=2), "instead") + value[at + data.draw(st.integers(0, 2), "without") :]
    )
    try:
        fields = decode(value, made.writer)
        check(fields)
        found = made.read(fields)
    except Poison:
        event("poison")
        return
    event("taken")
    try:
        theirs, _ = java_avro.read(made.writer.schema, value)
    except JavaAvroError as error:
        pytest.fail(f"we took {found!r}; Java did not: {error}")
    assert theirs == event_json(made.writer.schema, {name: fields[name] for name in FIRST}, found)


def test_a_schema_that_java_refuses_is_named_in_its_own_words(java_avro: JavaAvro) -> None:
    wrong = derive(Everything, "jobs") | {"fields": [{"name": "x", "type": "int", "default": "three"}]}
    with pytest.raises(JavaAvroError, match="Invalid default for field x"):
        java_avro.fingerprint(wrong)
