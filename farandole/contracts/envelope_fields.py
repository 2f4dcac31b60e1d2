"""The envelope as Avro fields: first in every record, the same for every event."""

from __future__ import annotations

from typing import Any

#: A JSON-ready Avro schema, or a part of one.
Schema = dict[str, Any]

UUID = {"type": "string", "logicalType": "uuid"}
_OPTIONAL_UUID = ["null", UUID]
_OPTIONAL_INT = ["null", "int"]

#: The envelope, first in every record. Times are microseconds since 1970, UTC.
ENVELOPE: tuple[Schema, ...] = (
    {"name": "event_id", "type": UUID, "doc": "names the fact; derived from its causes"},
    {"name": "trace_id", "type": UUID, "doc": "the job"},
    {"name": "causation_id", "type": _OPTIONAL_UUID, "default": None, "doc": "the event that caused this one"},
    {"name": "occurred_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "emitted_by", "type": "string", "doc": "agent and version"},
    {"name": "run", "type": "int", "default": 0, "doc": "raised by a redrive or a resubmission"},
    {"name": "hop", "type": "int", "default": 0, "doc": "handlings between the submission and this event"},
    {"name": "attempt", "type": "int", "default": 1, "doc": "which attempt of the handler produced it"},
    {"name": "scope_id", "type": _OPTIONAL_UUID, "default": None, "doc": "the fan-out it belongs to"},
    {"name": "part", "type": _OPTIONAL_INT, "default": None, "doc": "its place there, from 0"},
    {"name": "parts", "type": _OPTIONAL_INT, "default": None, "doc": "how many parts there are"},
    {"name": "tenant", "type": ["null", "string"], "default": None, "doc": "whose job it is"},
)
ENVELOPE_FIELDS: tuple[str, ...] = tuple(field["name"] for field in ENVELOPE)

#: An id that was left empty. An empty text would be no UUID to the libraries that convert by the logical type.
NOBODY = "00000000-0000-0000-0000-000000000000"
#: What whoever produces to an ingest topic need not know. These fields have a default there, which stands for "not told", so
#: that a schema without the envelope and the whole one can read each other; they are filled in when the record is read.
LEFT_EMPTY: dict[str, str | int] = {"event_id": NOBODY, "trace_id": NOBODY, "occurred_at": 0, "emitted_by": ""}


def envelope(ingest: bool) -> list[Schema]:
    """The envelope's fields in an event's schema."""
    if not ingest:
        return list(ENVELOPE)
    return [
        field | ({"default": LEFT_EMPTY[field["name"]]} if field["name"] in LEFT_EMPTY else {}) for field in ENVELOPE
    ]
