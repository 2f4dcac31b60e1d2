"""The first bytes of a record's value: which schema it was written with, in either of the two wire formats."""

from __future__ import annotations

from farandole.errors import Poison
from farandole.kafka import Headers, Record

#: First bytes of Avro's single-object encoding (Avro 1.12 specification); the schema's fingerprint follows, 8 bytes.
MARKER = b"\xc3\x01"
#: First byte of Confluent's framing; the schema's id in the Schema Registry follows, 4 bytes, big-endian.
MAGIC = b"\x00"
FINGERPRINT = 8
_SINGLE, _CONFLUENT = len(MARKER) + FINGERPRINT, len(MAGIC) + 4

#: The Kafka header beside Confluent's framing: id and fingerprint. An id means something in its registry alone; the
#: fingerprint names the schema wherever it is found. The id is told again because programs in between may copy headers
#: to records of another schema: a header with another id than its record's is none of that record's.
SCHEMA_HEADER = "farandole-schema"


def single_object(fingerprint: bytes) -> bytes:
    """What a value in Avro's single-object encoding starts with."""
    return MARKER + fingerprint


def confluent(number: int) -> bytes:
    """What a value in Confluent's framing starts with; `number` is the schema's id in the registry."""
    return MAGIC + number.to_bytes(4, "big")


def schema_header(number: int, fingerprint: bytes) -> tuple[str, bytes]:
    """The Kafka header that goes with Confluent's framing."""
    return SCHEMA_HEADER, number.to_bytes(4, "big") + fingerprint


def body_at(value: bytes) -> int:
    """Where the Avro data begins in a value that has a schema key."""
    return _CONFLUENT if value[:1] == MAGIC else _SINGLE


def schema_key(record: Record) -> bytes:
    """What names the record's schema: the start of its value, and behind an id the fingerprint where a header tells it.

    Raises Poison when the value is in neither format.
    """
    value = record.value
    if not value:
        raise Poison("empty", "the record has no value; expected Avro single-object encoding")
    if value[:2] == MARKER and len(value) >= _SINGLE:
        return value[:_SINGLE]
    if value[:1] == MAGIC and len(value) >= _CONFLUENT:
        return value[:_CONFLUENT] + _told(record.headers, value[1:_CONFLUENT])
    raise Poison(
        "undecodable",
        f"the value starts with {value[:2].hex(' ')}; expected Avro single-object encoding (c3 01) or Confluent's (00)",
    )


def fingerprint_in(key: bytes) -> bytes | None:
    """The fingerprint that a schema key holds, if any."""
    return None if len(key) == _CONFLUENT else key[-FINGERPRINT:]


def id_in(key: bytes) -> int | None:
    """The registry's id that a schema key holds, if any."""
    return int.from_bytes(key[1:_CONFLUENT], "big") if key[:1] == MAGIC else None


def _told(headers: Headers, number: bytes) -> bytes:
    """The fingerprint that the record's headers tell for its id; the last one where there are several."""
    for name, value in reversed(headers):
        if name == SCHEMA_HEADER and value and len(value) == 4 + FINGERPRINT and value[:4] == number:
            return value[4:]
    return b""
