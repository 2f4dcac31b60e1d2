"""A record decoded into an event's fields: the one reading that agents and projector share, so that they agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from farandole import envelope
from farandole.contracts import codec
from farandole.contracts.codec import Writer
from farandole.contracts.framing import schema_key
from farandole.contracts.lookup import Schemas
from farandole.envelope import Coordinates
from farandole.errors import Poison
from farandole.kafka import Record
from farandole.settings import Settings


@dataclass(frozen=True, slots=True)
class Decoded:
    """The fields of one event, envelope complete and checked, and the schema it was written with."""

    writer: Writer
    fields: dict[str, Any]


def coordinates(record: Record, settings: Settings) -> Coordinates:
    """Where the record lies, by the topic's name without the namespace."""
    return Coordinates(settings.bare(record.topic), record.partition, record.offset, record.timestamp_ms)


def schema_keys(found: Iterable[Record]) -> set[bytes]:
    """What these records name their schemas with; to be learned before the records are decoded."""
    return {key for record in found if (key := key_of(record))}


def key_of(record: Record) -> bytes | None:
    """What the record names its schema with; None where it names none."""
    try:
        return schema_key(record)
    except Poison:  # it is met again when the record is decoded
        return None


def writer_of(record: Record, schemas: Schemas) -> Writer:
    """The schema a record names. Raises Poison when it names none, or none that was learned."""
    return schemas.writer(schema_key(record))


def decode(record: Record, written: Writer, settings: Settings, reader: Writer | None = None) -> Decoded:
    """The event in `record`, its fields as `reader` wants them. Raises Poison when it is none.

    Envelope fields that a stranger's record lacks, or left empty, are completed from where the record lies.
    """
    value = record.value or b""
    if written.odd:
        raise Poison("invalid", f"{written.name}: envelope {written.odd}")
    if reader and reader.fingerprint != written.fingerprint:
        reader = codec.lenient(reader, written.missing)
    fields = codec.decode(value, written, None if reader is written else reader)
    if written.missing or envelope.left_empty(fields):
        envelope.complete(fields, coordinates(record, settings), record.key, written.identity, settings.flow)
    envelope.check(fields)
    return Decoded(written, fields)
