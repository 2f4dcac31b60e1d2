"""A record decoded into an event's fields: the one reading that agents and projector share, so that they agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from farandole import envelope
from farandole.contracts import codec
from farandole.contracts.codec import Writer
from farandole.contracts.schema_log import SchemaLog
from farandole.envelope import Coordinates
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


def fingerprints(found: Iterable[Record]) -> set[bytes]:
    """The schemas that these records name; to be learned before the records are decoded."""
    values = (record.value for record in found)
    return {value[2:10] for value in values if value and value[:2] == codec.MARKER and len(value) >= 10}


def writer_of(record: Record, schemas: SchemaLog) -> Writer:
    """The schema a record names. Raises Poison when it names none, or none that was learned."""
    return schemas.writer(codec.fingerprint_of(record.value))


def decode(record: Record, written: Writer, settings: Settings, reader: Writer | None = None) -> Decoded:
    """The event in `record`, its fields as `reader` wants them. Raises Poison when it is none.

    Envelope fields that the writer's schema lacks (a stranger's record) are completed from where the record lies.
    """
    value = record.value or b""
    if not written.missing:
        fields = codec.decode(value, written, None if reader is written else reader)
    else:
        fields = codec.decode(value, written, codec.without(reader, written.missing) if reader else None)
        envelope.complete(fields, coordinates(record, settings), record.key, written.name, settings.flow)
    envelope.check(fields)
    return Decoded(written, fields)
