"""Agents and projector agree on what strangers wrote into the envelope, or left out of it."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest

from farandole import Event, ids, records
from farandole.contracts import codec, framing
from farandole.contracts.codec import contract
from farandole.contracts.envelope_fields import ENVELOPE
from farandole.errors import Poison
from farandole.kafka import Record
from farandole.settings import Settings


class Asked(Event, topic="jobs.asked", ingest=True):
    text: str


def by_agent_and_projector(fields: list[Any], value: dict[str, Any]) -> list[Any]:
    """The envelope as each of them has it, or the cause why there is none."""
    schema = {"type": "record", "name": "jobs.Asked", "fields": [*fields, {"name": "text", "type": "string"}]}
    written, out = codec.writer(schema), BytesIO()
    fastavro.schemaless_writer(out, written.parsed, value | {"text": "?"})
    record = Record(
        "jobs.asked", 0, 5, 1_700_000_000_000, b"7", framing.single_object(written.fingerprint) + out.getvalue(), []
    )
    found: list[Any] = []
    for reader in (contract(Asked, "jobs").writer, None):
        try:
            found.append(records.decode(record, written, Settings(), reader).fields)
        except Poison as poison:
            found.append((poison.cause, str(poison)))
    return found


def optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def test_ids_that_are_null_are_filled_in() -> None:
    fields = [optional("event_id", "string"), optional("trace_id", "string"), optional("occurred_at", "long")]
    agent, projector = by_agent_and_projector(fields, {})
    assert agent == projector
    assert agent["trace_id"] == ids.trace_id_of_key("jobs", "7")
    assert agent["occurred_at"] == 1_700_000_000_000_000


@pytest.mark.parametrize("name", ["occurred_at", "emitted_by"])
def test_beside_ids_that_were_told_null_is_no_value(name: str) -> None:
    told: dict[str, Any] = {
        "event_id": ids.new_trace_id(),
        "trace_id": ids.new_trace_id(),
        "occurred_at": 1,
        "emitted_by": "x",
    }
    whole = [optional(name, field["type"]) if field["name"] == name else field for field in ENVELOPE]
    agent, projector = by_agent_and_projector(whole, told | {name: None})
    assert agent == projector == ("invalid", f"envelope field {name}: expected a value, found null")


def test_a_time_in_another_unit_is_nobodys_event() -> None:
    told = {"event_id": ids.new_trace_id(), "trace_id": ids.new_trace_id(), "occurred_at": 1_700_000_000_000}
    fields: list[Any] = [{"name": one, "type": "string"} for one in ("event_id", "trace_id")]
    fields.append({"name": "occurred_at", "type": {"type": "long", "logicalType": "timestamp-millis"}})
    agent, projector = by_agent_and_projector(fields, told)
    assert agent == projector
    assert agent[0] == "invalid"
    assert "written as timestamp-millis" in agent[1]
