"""Decoded values in JSON, by the schema alone, as the projector tells them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest

from farandole import Event
from farandole.contracts.codec import Writer, contract, decode, json_form, writer
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS
from farandole.errors import Poison
from farandole.projector.body import jsonb_text
from farandole.projector.rows import _body
from tests.unit.test_contracts import envelope
from tests.unit.test_field_kinds import Node
from tests.unit.test_honest_decoding import FULL, MADE, forged


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


@pytest.mark.parametrize("other", ["long", {"type": "long", "logicalType": "timestamp-micros"}])
def test_a_number_of_a_strangers_union_that_may_be_a_day_or_another_is_null_and_flagged(other: Any) -> None:
    day = {"type": "int", "logicalType": "date"}
    made = writer({"type": "record", "name": "X", "fields": [{"name": "x", "type": ["null", day, other]}]})
    assert told(made, {"x": 5}) == ({"x": None}, 1)
    assert told(made, {"x": None}) == ({"x": None}, 0)


def test_models_as_deep_as_a_reader_gets_are_told_or_left_out_but_do_not_stop_the_projector() -> None:
    class Deep(Event, topic="jobs.deep"):
        tree: Node | None

    made = contract(Deep, "jobs")
    head = made.encode(envelope(), Deep(tree=None))[:-1]
    told_of = set()
    for levels in range(1, 1_000, 20):
        with suppress(Poison):
            fields = decode(head + b"\x02\x02a\x00" * levels + b"\0", made.writer)
            body, changed = _body({"tree": fields["tree"]}, json_form(made.writer), plain=False)
            assert (body is None) == changed
            told_of.add(body is not None)
    assert True in told_of
