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
from farandole.contracts import codec
from farandole.contracts.codec import Writer, json_form
from farandole.contracts.fields.scalars import Misfit
from farandole.contracts.framing import body_at
from farandole.contracts.lookup import Schemas
from farandole.contracts.wire.json_form import Form
from farandole.contracts.wire.unpacking import Read
from farandole.errors import Poison
from farandole.kafka import Record
from farandole.projector.body import clean, jsonb_text
from farandole.projector.heads import REST, Head, Heads, head_of, packed_text
from farandole.records import coordinates, decode, key_of, writer_of
from farandole.settings import Settings

#: The columns in the order in which a row is packed: those of fixed length first, in one struct.
COLUMNS = (
    "event_id",
    "trace_id",
    "occurred_at",
    "partition",
    "offset",
    "logged_at",
    "content_hash",
    "sanitised",
    "causation_id",
    *REST,
    "type",
    "stage",
    "outcome",
    "topic",
    "value",
    "body",
)
_FIXED = struct.Struct("!h i16s i16s iq ii iq iq iq i?".replace(" ", ""))
_UUID = struct.Struct("!i16s")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)

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
        keys = [key_of(record) for record in records]
        self._schemas.learn({key for key in keys if key})
        made = Batch()
        meanings: dict[tuple[bytes | None, str], _Meaning] = {}  # for this batch only: a declared schema may come later
        for record, key in zip(records, keys, strict=True):
            try:
                meaning = meanings.get((key, record.topic))
                if meaning is None:
                    meaning = meanings[key, record.topic] = self._meaning(
                        writer_of(record, self._schemas), record.topic
                    )
                row = _quickly(record, meaning) or self._carefully(record, meaning)
            except Poison as poison:
                made.parked.append(Parked(record, poison.cause, str(poison)))
            else:
                made.records.append(record)
                made.rows.append(row)
        return made

    def _carefully(self, record: Record, meaning: _Meaning) -> bytes:
        written = meaning.written
        try:
            fields = decode(record, written, self._settings).fields
            return _pack(record, head_of(fields), fields, meaning)
        except (struct.error, TypeError, ValueError, AttributeError, OverflowError) as error:
            # a stranger's schema may give an envelope field any type
            raise Poison("invalid", f"{written.name}: an envelope field has an odd type or size: {error}") from error

    def _meaning(self, written: Writer, topic: str) -> _Meaning:
        declared = self._schemas.meaning(written)
        outcome = declared.outcome if declared.outcome in ("done", "failed", "blocked") else None
        stage = None if declared.stage is None else str(declared.stage)
        texts = [packed_text(text) for text in (written.name, stage, outcome, self._settings.bare(topic))]
        return _Meaning(
            written,
            b"".join(packed for packed, _ in texts),
            any(changed for _, changed in texts),
            json_form(written),
            codec.plain_json(written),
            _quick(written),
        )


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What all records of one schema in one topic share."""

    written: Writer
    packed: bytes  #: type, stage, outcome and topic
    sanitised: bool
    form: Form  #: of the payload, in JSON
    plain: bool  #: whether that is of texts, whole numbers and truths alone
    quick: tuple[Heads, Read] | None  #: reads the envelope from the bytes, and the payload; None: not this schema's


@lru_cache(1000)
def _quick(written: Writer) -> tuple[Heads, Read] | None:
    readers = codec.envelope_first(written)
    return readers and (Heads(readers[0]), readers[1])


def _quickly(record: Record, meaning: _Meaning) -> bytes | None:
    """The row of a record that is as farandole writes them; None of any other, sound or not."""
    value = record.value
    if meaning.quick is None or not value:
        return None
    heads, payload = meaning.quick
    try:
        found = heads.read(value, body_at(value))
        if found is None:
            return None
        head, at = found
        fields, end = payload(value, at)
    except (Misfit, IndexError):
        return None
    return _pack(record, head, fields, meaning) if end == len(value) else None


def _pack(record: Record, head: Head, payload: dict[str, Any], meaning: _Meaning) -> bytes:
    """One row."""
    event_id, trace_id, cause, occurred_at, rest = head
    body, changed = _body(payload, meaning.form, meaning.plain)
    value = record.value or b""
    digest = blake2b(value if body is None else body, digest_size=8).digest()
    logged_at = min(max(record.timestamp_ms * 1000, _FIRST), _LAST)
    return b"".join(
        (
            _FIXED.pack(
                len(COLUMNS),
                16,
                event_id,
                16,
                trace_id,
                8,
                occurred_at - _EPOCH,
                4,
                record.partition,
                8,
                record.offset,
                8,
                logged_at - _EPOCH,
                8,
                int.from_bytes(digest, "big", signed=True),
                1,
                changed or rest.sanitised or meaning.sanitised,
            ),
            _UUID.pack(16, cause) if cause else _NULL,
            rest.packed,
            meaning.packed,
            _LENGTH.pack(len(value)),
            value,
            _NULL if body is None else _LENGTH.pack(len(body) + 1) + b"\x01",  # 1: jsonb's wire version
            body or b"",
        )
    )


def _body(payload: dict[str, Any], form: Form, plain: bool) -> tuple[bytes | None, bool]:
    """The payload as jsonb takes it, and whether something had to be left out."""
    lost: list[Any] = []
    try:
        body, changed = jsonb_text(form(payload, lost), plain)
    except RecursionError:
        return None, True
    return body, changed or bool(lost)


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
