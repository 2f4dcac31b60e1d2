"""What records carry besides an event, as AsyncAPI tells it: keys, headers, dead letters, wakes, schemas."""

from __future__ import annotations

from typing import Any

from farandole import dead_letter, wake

#: Names of messages that are no events.
DEAD_LETTER, WAKE, SCHEMA = "DeadLetter", "Wake", "AvroSchema"

KEY = {"type": "string", "description": "the job's trace_id; of a part of a fan-out its scope_id, a dot and its place"}

FRAMING = (
    "The value is Avro in single-object encoding: c3 01, the schema's CRC-64-AVRO fingerprint (8 bytes, little-endian; the "
    "schema lies under it in the topic farandole.schemas), then the data. With a Schema Registry it is Confluent's framing: "
    "00, the schema's id there (4 bytes, big-endian), then the data. A topic may hold both."
)
PART = "The schema is the part of the event that is read here; the whole is in the document of those who emit it."
COMPLETED = (
    "For producers outside the flow: the envelope may be left out. event_id then comes from topic, partition and offset, "
    "trace_id from the record's key, any text, else from the same place. " + FRAMING
)

EVENT_HEADERS = {
    "type": "object",
    "properties": {
        "traceparent": {
            "type": "string",
            "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
            "description": "W3C trace context: the job is the trace, the event the span",
        },
        "farandole-schema": {
            "type": "string",
            "description": "beside Confluent's framing, 12 bytes: the schema's id as in the value, and its fingerprint",
        },
    },
}

_AS_IT_WAS = {"type": "string", "format": "binary", "description": "the record's value as it was"}


def messages(*, with_agents: bool) -> dict[str, Any]:
    """Messages that are no events, by name; those of agents only where there are any."""
    own = {
        SCHEMA: {
            "title": "An Avro schema",
            "description": "Every schema that records were ever written with; the topic is compacted.",
            "contentType": "application/json",
            "payload": {"type": "object", "description": "the schema, as in its .avsc file"},
            "bindings": {"kafka": {"key": {"type": "string", "description": "its fingerprint in hex, as on the wire"}}},
        }
    }
    return own | ({DEAD_LETTER: _dead_letter(), WAKE: _wake()} if with_agents else {})


def _dead_letter() -> dict[str, Any]:
    told = {
        "agent": "whose it is", "cause": "a stable word", "error": "the first one, for people", "last_error": "for people",
        "attempts": "of all handlings of the run", "topic": "where the record lay", "partition": "of the record",
        "offset": "of the record", "timestamp": "of the record, milliseconds since 1970", "run": "of the record",
        "at": "milliseconds since 1970", "event_id": "of the JobDeadLettered event written with it",
        "cut_from_bytes": "the value's size, where it did not fit and was cut",
    }  # fmt: skip
    return {
        "title": "A dead letter",
        **_raw("A record that could not be handled, as it was.", dead_letter.PREFIX, told),
    }


def _wake() -> dict[str, Any]:
    told = {
        "topic": "where the record lay", "partition": "of the record", "offset": "of the record",
        "timestamp": "of the record, milliseconds since 1970", "seq": "how often it was put off; 0: a redrive",
        "run": "in place of the envelope's", "attempts": "made before", "error": "the first one",
    }  # fmt: skip
    return {
        "title": "A wake",
        **_raw("A record that was put off, as it was: it comes back to its agent.", wake.PREFIX, told),
    }


def _raw(what: str, prefix: str, told: dict[str, str]) -> dict[str, Any]:
    """A record with its own headers, and headers of ours as text."""
    headers = {prefix + name: {"type": "string", "description": text} for name, text in told.items()}
    return {
        "description": what,
        "contentType": "application/octet-stream",
        "headers": {"type": "object", "properties": headers},
        "payload": _AS_IT_WAS,
    }
