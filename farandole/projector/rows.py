"""Records made ready for the database: rows of event_log in Postgres' binary COPY format, and what must be parked."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from farandole import envelope
from farandole.contracts.codec import Writer, json_form
from farandole.contracts.lookup import Schemas
from farandole.contracts.wire.json_form import Form
from farandole.errors import Poison
from farandole.kafka import Record
from farandole.projector.body import clean, jsonb_text
from farandole.records import coordinates, decode, schema_keys, writer_of
from farandole.settings import Settings

#: The columns in the order in which a row is packed: those of fixed length first, in one struct.
COLUMNS = (
    "event_id",
    "trace_id",
    "occurred_at",
    "run",
    "hop",
    "attempt",
    "partition",
    "offset",
    "logged_at",
    "content_hash",
    "sanitised",
    "causation_id",
    "scope_id",
    "part",
    "parts",
    "emitted_by",
    "tenant",
    "type",
    "stage",
    "outcome",
    "topic",
    "value",
    "body",
)
_FIXED = struct.Struct("!h i16s i16s iq ii ii ii ii iq iq iq i?".replace(" ", ""))
_UUID = struct.Struct("!i16s")
_INT = struct.Struct("!ii")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)
_NO_SCOPE = _NULL * 3

#: Microseconds from 1970 to 2000, where Postgres counts from.
_EPOCH = 946_684_800_000_000
#: Microseconds since 1970 that a timestamptz surely holds (the years 1 to 9999); a Kafka timestamp may be anything.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


@dataclass(frozen=True, slots=True)
class Parked:
    """A record that is no event, and why."""

    record: Record
    cause: str
    error: str


@dataclass(slots=True)
class Batch:
    """Records on their way into one transaction."""

    records: list[Record] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)  #: of `records`, one each
    parked: list[Parked] = field(default_factory=list)


class Rows:
    """Turns records into rows; the schemas say what the records mean."""

    def __init__(self, schemas: Schemas, settings: Settings) -> None:
        self._schemas = schemas
        self._settings = settings

    def batch(self, records: Sequence[Record]) -> Batch:
        """All of `records`, each as a row or as parked. Raises Unreachable when a schema cannot be looked up."""
        self._schemas.learn(schema_keys(records))
        made = Batch()
        meanings: dict[tuple[Writer, str], _Meaning] = {}  # for this batch only: a declared schema may come later
        for record in records:
            try:
                row = self._row(record, meanings)
            except Poison as poison:
                made.parked.append(Parked(record, poison.cause, str(poison)))
            else:
                made.records.append(record)
                made.rows.append(row)
        return made

    def _row(self, record: Record, meanings: dict[tuple[Writer, str], _Meaning]) -> bytes:
        written = writer_of(record, self._schemas)
        meaning = meanings.get((written, record.topic))
        if meaning is None:
            meaning = meanings[written, record.topic] = self._meaning(written, record.topic)
        try:
            fields = decode(record, written, self._settings).fields
            return _pack(record, fields, meaning)
        except (struct.error, TypeError, ValueError, AttributeError, OverflowError) as error:
            # a stranger's schema may give an envelope field any type
            raise Poison("invalid", f"{written.name}: an envelope field has an odd type or size: {error}") from error

    def _meaning(self, written: Writer, topic: str) -> _Meaning:
        declared = self._schemas.meaning(written)
        outcome = declared.outcome if declared.outcome in ("done", "failed", "blocked") else None
        stage = None if declared.stage is None else str(declared.stage)
        texts = [_text(text) for text in (written.name, stage, outcome, self._settings.bare(topic))]
        return _Meaning(
            b"".join(packed for packed, _ in texts), any(changed for _, changed in texts), json_form(written)
        )


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What all records of one schema in one topic share: type, stage, outcome and topic, packed."""

    packed: bytes
    sanitised: bool
    form: Form  #: of the payload, in JSON


def _pack(record: Record, fields: dict[str, Any], meaning: _Meaning) -> bytes:
    """One row. Takes the envelope out of `fields`: what is left is the payload."""
    take = fields.pop
    event_id, trace_id, causation_id = take("event_id"), take("trace_id"), take("causation_id")
    occurred_at, run, hop, attempt = take("occurred_at"), take("run"), take("hop"), take("attempt")
    scope_id, part, parts = take("scope_id"), take("part"), take("parts")
    emitted_by, changed_emitter = _text(take("emitted_by"))
    tenant, changed_tenant = _text(take("tenant"))
    body, changed_body = _body(fields, meaning.form)
    value = record.value or b""
    digest = blake2b(value if body is None else body, digest_size=8).digest()
    logged_at = min(max(record.timestamp_ms * 1000, _FIRST), _LAST)
    return b"".join(
        (
            _FIXED.pack(
                len(COLUMNS),
                16,
                _uuid(event_id),
                16,
                _uuid(trace_id),
                8,
                occurred_at - _EPOCH,
                4,
                run,
                4,
                hop,
                4,
                attempt,
                4,
                record.partition,
                8,
                record.offset,
                8,
                logged_at - _EPOCH,
                8,
                int.from_bytes(digest, "big", signed=True),
                1,
                changed_body or changed_emitter or changed_tenant or meaning.sanitised,
            ),
            _UUID.pack(16, _uuid(causation_id)) if causation_id else _NULL,
            _NO_SCOPE if scope_id is None and part is None and parts is None else _scope(scope_id, part, parts),
            emitted_by,
            tenant,
            meaning.packed,
            _LENGTH.pack(len(value)),
            value,
            _NULL if body is None else _LENGTH.pack(len(body) + 1) + b"\x01" + body,  # 1: jsonb's wire version
        )
    )


def _body(fields: dict[str, Any], form: Form) -> tuple[bytes | None, bool]:
    """The payload as jsonb takes it, and whether something had to be left out."""
    lost: list[Any] = []
    try:
        body, changed = jsonb_text(form(fields, lost))
    except RecursionError:
        return None, True
    return body, changed or bool(lost)


def _uuid(text: str) -> bytes:
    return bytes.fromhex(text.replace("-", ""))


def _scope(scope_id: str | None, part: int | None, parts: int | None) -> bytes:
    numbers = [_NULL if number is None else _INT.pack(4, number) for number in (part, parts)]
    return b"".join((_NULL if scope_id is None else _UUID.pack(16, _uuid(scope_id)), *numbers))


@lru_cache(4096)
def _text(value: str | None) -> tuple[bytes, bool]:
    """A text column, packed, and whether it had to be sanitised."""
    if value is None:
        return _NULL, False
    cleaned = clean(value)
    data = cleaned.encode()
    return _LENGTH.pack(len(data)) + data, cleaned != value


def copy_data(rows: Sequence[bytes]) -> bytes:
    """The rows as one binary COPY stream: signature, flags and header length, the rows, the trailer."""
    return b"".join((b"PGCOPY\n\xff\r\n\0", b"\0" * 8, *rows, b"\xff\xff"))


def parked_row(parked: Parked, settings: Settings) -> dict[str, Any]:
    """The row of a parked record, raw; the job is a guess from its key and place."""
    record = parked.record
    at = coordinates(record, settings)
    headers = [[clean(name), None if value is None else b64encode(value).decode()] for name, value in record.headers]
    return {
        "topic": at.topic,
        "partition": at.partition,
        "offset": at.offset,
        "timestamp_ms": at.timestamp_ms,
        "key": record.key,
        "value": record.value,
        "headers": headers,
        "trace_id": envelope.trace_of(at, record.key, settings.flow),
        "cause": clean(parked.cause),
        "error": clean(parked.error)[:2000],
    }
