"""Event classes and their Avro form: what is mapped survives the round trip, what has no faithful form is refused."""

from __future__ import annotations

import enum
import json
from datetime import UTC, date, datetime
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, ValidationError

from farandole import Event, ids, personal
from farandole.contracts import framing
from farandole.contracts.codec import contract, decode, lenient, writer
from farandole.contracts.deriving import derive
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS
from farandole.envelope import Emitter, begin
from farandole.errors import ConfigurationError, Poison
from farandole.kafka import Record


def record(value: bytes | None, *headers: tuple[str, bytes | None]) -> Record:
    return Record("jobs.everything", 0, 0, 0, None, value, list(headers))


class Mood(enum.StrEnum):
    calm = "calm"
    cross = "cross"
    unknown = "unknown"

    __unknown__ = "unknown"


class Item(BaseModel):
    model_config = {"extra": "forbid", "allow_inf_nan": False}

    name: str
    count: int = 1


class Everything(Event, topic="jobs.everything", stage="everything", terminal="done", ingest=True):
    """One field of each kind."""

    text: str = personal()
    number: int
    share: float
    flag: bool
    raw: bytes
    ref: UUID
    day: date
    at: AwareDatetime
    mood: Mood
    kind: Literal["a", "b"]
    items: list[Item]
    counts: dict[str, int]
    maybe: str | None = None
    item: Item | None = None
    level: int | None = 3


def everything(**fields: Any) -> Everything:
    base: dict[str, Any] = {
        "text": "x", "number": 1, "share": 0.5, "flag": True, "raw": b"\0", "ref": UUID(int=1), "day": date(2026, 1, 2),
        "at": datetime(2026, 1, 2, 3, tzinfo=UTC), "mood": Mood.calm, "kind": "a", "items": [], "counts": {},
    }  # fmt: skip
    return Everything(**(base | fields))


def envelope() -> dict[str, Any]:
    return begin(ids.new_trace_id(), Emitter("client"), "jobs.Everything")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LONG = st.integers(-(2**63), 2**63 - 1)


@given(
    TEXT, LONG, st.floats(allow_nan=False, allow_infinity=False), st.binary(max_size=30), st.uuids(), st.dates(),
    st.datetimes(timezones=st.just(UTC)), st.sampled_from(Mood), st.lists(st.builds(Item, name=TEXT, count=LONG), max_size=3),
    st.dictionaries(TEXT, LONG, max_size=3), st.none() | TEXT,
)  # fmt: skip
def test_any_valid_event_survives_the_round_trip_equal(
    text: str, number: int, share: float, raw: bytes, ref: UUID, day: date, at: datetime, mood: Mood, items: list[Item],
    counts: dict[str, int], maybe: str | None,
) -> None:  # fmt: skip
    event = everything(
        text=text,
        number=number,
        share=share,
        raw=raw,
        ref=ref,
        day=day,
        at=at,
        mood=mood,
        items=items,
        counts=counts,
        maybe=maybe,
    )
    made, raw_envelope = contract(Everything, "jobs"), envelope()
    value = made.encode(raw_envelope, event)
    assert value[:2] == framing.MARKER
    assert framing.schema_key(record(value)) == framing.single_object(made.writer.fingerprint)
    fields = decode(value, made.writer)
    assert {name: fields[name] for name in ENVELOPE_FIELDS} == raw_envelope, "ids stay strings and times longs"
    assert made.read(fields) == event


def test_the_schema_says_what_the_event_means() -> None:
    schema = derive(Everything, "jobs")
    assert (schema["namespace"], schema["name"], schema["doc"]) == ("jobs", "Everything", "One field of each kind.")
    assert (schema["topic"], schema["stage"], schema["terminal"], schema["ingest"]) == (
        "jobs.everything", "everything", "done", True,
    )  # fmt: skip
    fields = {field["name"]: field for field in schema["fields"]}
    assert list(fields)[: len(ENVELOPE_FIELDS)] == list(ENVELOPE_FIELDS)
    assert fields["text"]["personal"] is True
    assert fields["maybe"] == {"name": "maybe", "type": ["null", "string"], "default": None}
    assert fields["level"] == {"name": "level", "type": ["long", "null"], "default": 3}, (
        "the default's branch comes first"
    )
    assert fields["mood"]["type"]["default"] == "unknown", "what a reader takes unknown words for"
    assert fields["items"]["type"]["items"]["name"] == "Item"
    assert fields["item"]["type"] == ["null", "Item"], "a type is defined once and referred to by name"
    json.dumps(schema)


def test_a_field_cannot_be_called_like_one_of_the_envelope_and_a_topic_belongs_to_its_flow() -> None:
    class Clash(Event, topic="jobs.clash", stage="clash"):
        trace_id: str

    class Elsewhere(Event, topic="mails.read", stage="read"):
        text: str

    with pytest.raises(ConfigurationError, match="'trace_id' is one of the envelope"):
        derive(Clash, "jobs")
    with pytest.raises(ConfigurationError, match=r"expected 'jobs\.…'"):
        derive(Elsewhere, "jobs")
    with pytest.raises(ConfigurationError, match="topic is missing"):
        type("Nameless", (Event,), {})


@pytest.mark.parametrize(
    "fields",
    [
        {"texxt": "a typo"},
        {"share": float("nan")},
        {"share": float("inf")},
        {"at": datetime(2026, 1, 2)},  # noqa: DTZ001  the point
        {"kind": "c"},
    ],
)
def test_what_would_be_a_silent_null_or_a_wrong_value_is_an_error_in_the_producer(fields: dict[str, Any]) -> None:
    """Cases S1 and S2: a naive time, a misspelt field; also NaN."""
    with pytest.raises(ValidationError):
        everything(**fields)


@pytest.mark.parametrize("fields", [{"number": 2**63}, {"text": "a lone \ud83d"}])
def test_a_value_that_avro_cannot_hold_is_an_error_in_the_producer(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"jobs\.Everything does not fit its schema"):
        contract(Everything, "jobs").encode(envelope(), everything(**fields))


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_poison(tail: bytes) -> None:
    made = contract(Everything, "jobs")
    try:
        fields = decode(made.header + tail, made.writer)
    except Poison as poison:
        assert poison.cause == "undecodable"
    else:
        assert set(ENVELOPE_FIELDS) <= set(fields)


@pytest.mark.parametrize("value", [None, b"", b"\x00", b"{}", b"\xc3\x01short"])
def test_what_names_no_schema_is_poison(value: bytes | None) -> None:
    with pytest.raises(Poison):
        framing.schema_key(record(value))


def test_a_strangers_schema_is_read_through_ours() -> None:
    made = contract(Everything, "jobs")
    bare = writer(derive(Everything, "jobs", envelope=False))
    assert set(bare.missing) == set(ENVELOPE_FIELDS)
    reader = lenient(made.writer, bare.missing)
    assert [field["name"] for field in reader.schema["fields"]] == [field["name"] for field in bare.schema["fields"]]


@pytest.mark.parametrize(
    "schema", [{}, {"type": "string"}, {"type": "record", "name": "x"}, {"type": "nope", "fields": []}]
)
def test_what_is_no_record_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="not an Avro"):
        writer(schema)
