"""The envelope, and the one place that passes lineage on: who caused what, in which job, run and hop."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from farandole import ids
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS, LEFT_EMPTY, NOBODY
from farandole.errors import Poison

Raw = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Microseconds. Outside the years 1 to 9999 neither Python nor Postgres has a date.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


#: What stands for an id that was not told; null and no text where a stranger's schema allows it.
_UNTOLD = (NOBODY, "", None)

#: Avro's int and Postgres's; one below the largest, so that the next hop fits.
_MAX_INT = 2**31 - 1

#: Kafka's offsets and timestamps, and Postgres's bigint.
_MAX_LONG = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Emitter:
    """Who emits: its name is part of the ids, its version only shown."""

    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip()


class Envelope:
    """What every event carries besides its payload. `raw` holds the wire's strings and integers, converted when looked at."""

    __slots__ = ("raw",)

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def __repr__(self) -> str:
        return f"Envelope({', '.join(f'{name}={self.raw[name]!r}' for name in ENVELOPE_FIELDS)})"

    @property
    def event_id(self) -> UUID:
        return UUID(self.raw["event_id"])

    @property
    def trace_id(self) -> UUID:
        """The job."""
        return UUID(self.raw["trace_id"])

    @property
    def causation_id(self) -> UUID | None:
        return UUID(self.raw["causation_id"]) if self.raw["causation_id"] else None

    @property
    def occurred_at(self) -> datetime:
        """In UTC, to the microsecond."""
        return _EPOCH + timedelta(microseconds=self.raw["occurred_at"])

    @property
    def emitted_by(self) -> str:
        return str(self.raw["emitted_by"])

    @property
    def run(self) -> int:
        return int(self.raw["run"])

    @property
    def hop(self) -> int:
        return int(self.raw["hop"])

    @property
    def attempt(self) -> int:
        return int(self.raw["attempt"])

    @property
    def tenant(self) -> str | None:
        return None if self.raw["tenant"] is None else str(self.raw["tenant"])


def key_of(raw: Raw) -> str:
    """The Kafka key: the job, or for a part of a fan-out its scope and place, so that parts spread over partitions."""
    if raw["scope_id"] is None:
        return str(raw["trace_id"])
    return f"{raw['scope_id']}.{raw['part']}"


def traceparent(raw: Raw) -> bytes:
    """The header that names job and event as W3C trace context, version 00: the job is the trace, the event the span."""
    event = raw["event_id"]
    return f"00-{raw['trace_id'].replace('-', '')}-{event[19:23]}{event[24:]}-01".encode()


def follow(causes: Sequence[Raw], emitter: Emitter, event_type: str, position: int, attempt: int = 1) -> dict[str, Any]:
    """The envelope of an event caused by `causes` (in part order; the last one is named as the cause).

    Nobody else sets lineage. The id is derived from the causes' ids, the emitter's name, the run, the event type's full
    Avro name and the position among the outputs, so handling the same input again gives the same id.
    """
    last = causes[-1]
    trace_id, run = last["trace_id"], max(cause["run"] for cause in causes)
    return {
        "event_id": ids.event_id(
            trace_id, [cause["event_id"] for cause in causes], emitter.name, run, event_type, position
        ),
        "trace_id": trace_id,
        "causation_id": last["event_id"],
        "occurred_at": time.time_ns() // 1000,
        "emitted_by": str(emitter),
        "run": run,
        "hop": 1 + max(cause["hop"] for cause in causes),
        "attempt": attempt,
        "scope_id": last["scope_id"],
        "part": last["part"],
        "parts": last["parts"],
        "tenant": last["tenant"],
    }


def begin(trace_id: str, emitter: Emitter, event_type: str, tenant: str | None = None) -> dict[str, Any]:
    """The envelope of the first event of a job. The same trace_id gives the same event_id: submitting twice is one event."""
    return {
        "event_id": ids.event_id(trace_id, [trace_id], emitter.name, 0, event_type, 0),
        "trace_id": trace_id,
        "causation_id": None,
        "occurred_at": time.time_ns() // 1000,
        "emitted_by": str(emitter),
        "run": 0,
        "hop": 0,
        "attempt": 1,
        "scope_id": None,
        "part": None,
        "parts": None,
        "tenant": tenant,
    }


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where a record lies in the log; `topic` is without the namespace, `timestamp_ms` is Kafka's."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


def place_of(text: Mapping[str, str]) -> Coordinates:
    """The place that headers tell of, by topic, partition, offset and timestamp. Raises KeyError or ValueError for one that
    no log has."""
    topic = text["topic"]
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", topic):
        raise ValueError(f"no topic is called {topic!r:.60}")
    return Coordinates(
        topic,
        number_of(text, "partition", _MAX_INT),
        number_of(text, "offset", _MAX_LONG),
        number_of(text, "timestamp", _MAX_LONG, -1),
    )


def number_of(text: Mapping[str, str], name: str, below: int = _MAX_INT, least: int = 0) -> int:
    """A number that a header tells of. Raises KeyError or ValueError where it is none, or outside `least` to `below`."""
    found = int(text[name])
    if not least <= found < below:
        raise ValueError(f"{name} is {found}; expected {least} to {below - 1}")
    return found


def complete(fields: dict[str, Any], at: Coordinates, key: bytes | None, event_type: str, flow: str) -> None:
    """Fill in place the envelope fields that a stranger's record lacks or left empty, the same way each time it is read.

    The job comes from the key (as it is when it is an id, else derived as from a business key), or from where the record
    lies; the event_id from where the record lies, and its Kafka timestamp, which tells a recreated topic apart.
    """
    told = fields.get("trace_id")
    trace_id = trace_of(at, key, flow) if told in _UNTOLD else told
    place = f"{at.topic}:{at.partition}:{at.offset}:{at.timestamp_ms}"
    found = begin(trace_id, Emitter("unknown"), event_type)
    found["event_id"] = ids.event_id(trace_id, [place], "stranger", 0, event_type, 0)
    found["occurred_at"] = at.timestamp_ms * 1000
    for name, value in found.items():
        if name not in fields or (name in LEFT_EMPTY and fields[name] in (*_UNTOLD, LEFT_EMPTY[name])):
            fields[name] = value


def left_empty(fields: Raw) -> bool:
    """Whether a record's writer knew of the envelope, and left the filling in to its readers."""
    return fields["event_id"] in _UNTOLD or fields["trace_id"] in _UNTOLD


def trace_of(at: Coordinates, key: bytes | None, flow: str) -> str:
    """The job that a record belongs to as far as its key and place tell; used where its value does not say."""
    if not key:
        return ids.trace_id_of_record(at.topic, at.partition, at.offset, at.timestamp_ms)
    text = key.decode("utf-8", "backslashreplace")
    return text if ids.is_id(text) else ids.trace_id_of_key(flow, text)


def check(fields: Raw) -> None:
    """Raise Poison naming the envelope field whose value no tool downstream could hold."""
    for name in ("event_id", "trace_id"):
        if not ids.is_id(fields[name]):
            raise Poison("invalid", f"envelope field {name}: expected a lower-case UUID, found {fields[name]!r:.60}")
    for name in ("causation_id", "scope_id"):
        if fields[name] is not None and not ids.is_id(fields[name]):
            raise Poison(
                "invalid", f"envelope field {name}: expected a lower-case UUID or null, found {fields[name]!r:.60}"
            )
    for name in ("occurred_at", "emitted_by"):
        if fields[name] is None:
            raise Poison("invalid", f"envelope field {name}: expected a value, found null")
    if not _FIRST <= fields["occurred_at"] <= _LAST:
        raise Poison(
            "invalid", f"envelope field occurred_at: expected the years 1 to 9999, found {fields['occurred_at']} µs"
        )
    for name in ("run", "hop", "attempt", "part", "parts"):
        if fields[name] is not None and not 0 <= fields[name] < _MAX_INT:
            raise Poison("invalid", f"envelope field {name}: expected 0 to {_MAX_INT - 1}, found {fields[name]}")
