"""An event to Avro bytes and back. The only module that imports fastavro."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from typing import Any, cast

import fastavro
from fastavro.schema import SchemaParseException, fingerprint, to_parsing_canonical_form
from pydantic import ValidationError

from farandole.contracts import framing
from farandole.contracts.deriving import derive
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS, Schema
from farandole.errors import ConfigurationError, Poison
from farandole.event import Event


@dataclass(frozen=True, slots=True, eq=False)
class Writer:
    """A schema that records are written with: how to read them, and what the schema says of the event."""

    schema: Schema
    parsed: Any  #: fastavro's form, envelope ids and times left as strings and longs
    fingerprint: bytes  #: CRC-64-AVRO, 8 bytes, little-endian as on the wire
    name: str  #: full Avro name
    missing: tuple[str, ...]  #: envelope fields it lacks: a stranger's schema

    @property
    def declared(self) -> bool:
        """Whether the schema says what its event means; a stranger's, or a code generator's, may hold fields alone."""
        return "topic" in self.schema

    @property
    def aliases(self) -> tuple[str, ...]:
        """The full names that it had before, the first one first."""
        return tuple(self._full(alias) for alias in self.schema.get("aliases", ()))

    @property
    def identity(self) -> str:
        """The full name it had at first. Part of ids: a class that is renamed derives the same ids as before."""
        return self.aliases[0] if self.aliases else self.name

    def _full(self, alias: str) -> str:
        return alias if "." in alias else f"{self.name.rpartition('.')[0]}.{alias}"

    @property
    def stage(self) -> str | None:
        return self.schema.get("stage")

    @property
    def outcome(self) -> str | None:
        """What the event makes of its job: "done", "failed", "blocked" or None."""
        return self.schema.get("terminal") or ("blocked" if self.schema.get("blocks") else None)


def writer(schema: Schema) -> Writer:
    """Prepare `schema` (JSON-ready) for reading. Raises ConfigurationError when it is no valid Avro record schema."""
    try:
        parsed = fastavro.parse_schema(_readable(schema))
        canonical = to_parsing_canonical_form(copy.deepcopy(schema))
    except (SchemaParseException, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"not an Avro schema: {error}") from error
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise ConfigurationError("not an Avro record schema")
    names = {field["name"] for field in schema["fields"]}
    missing = tuple(name for name in ENVELOPE_FIELDS if name not in names)
    digest = bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))
    return Writer(schema, parsed, digest, str(parsed["name"]), missing)


def _readable(schema: Schema) -> Schema:
    """The schema without the logical types of the envelope: ids stay strings and times longs until looked at."""
    fields = [
        field | {"type": _plain(field["type"])} if field["name"] in ENVELOPE_FIELDS else field
        for field in schema["fields"]
    ]
    return copy.deepcopy(schema | {"fields": fields})


def _plain(kind: Any) -> Any:
    if isinstance(kind, list):
        return [_plain(branch) for branch in kind]
    return kind["type"] if isinstance(kind, dict) and "logicalType" in kind else kind


@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """An event class bound to its flow: the schema it is written with and the bytes every record of it starts with."""

    event: type[Event]
    writer: Writer
    topic: str  #: without the namespace
    header: bytes
    headers: tuple[tuple[str, bytes], ...] = ()  #: Kafka headers that go with every record of it

    def registered(self, number: int) -> Contract:
        """The same in Confluent's framing, under its id in the Schema Registry."""
        header = framing.schema_header(number, self.writer.fingerprint)
        return replace(self, header=framing.confluent(number), headers=(header,))

    def encode(self, envelope: dict[str, Any], payload: Event) -> bytes:
        """The record's value. Raises ConfigurationError naming the event when a value does not fit its schema."""
        if self.event.__event__.view:
            raise ConfigurationError(f"event {self.event.__name__} is a view of {self.writer.name}: it is read only")
        out = BytesIO()
        out.write(self.header)
        try:
            fastavro.schemaless_writer(out, self.writer.parsed, envelope | payload.model_dump(), strict=True)
        except (ValueError, TypeError, OverflowError, KeyError) as error:
            raise ConfigurationError(f"event {self.writer.name} does not fit its schema: {error}") from error
        return out.getvalue()

    def read(self, fields: dict[str, Any]) -> Event:
        """The payload from decoded `fields` (envelope fields are left out). Raises Poison naming the wrong field."""
        payload = {name: value for name, value in fields.items() if name not in _ENVELOPE}
        try:
            return self.event.model_validate(payload)
        except Exception as error:
            raise Poison("invalid", f"{self.writer.name}: {_first_line(error)}") from error


_ENVELOPE = frozenset(ENVELOPE_FIELDS)


@cache
def contract(event: type[Event], flow: str) -> Contract:
    """The contract of `event` in `flow`; one object each, so that two uses of a class agree."""
    made = writer(derive(event, flow))
    return Contract(event, made, made.schema["topic"], framing.single_object(made.fingerprint))


@cache
def without(reader: Writer, fields: tuple[str, ...], name: str = "") -> Writer:
    """`reader` less some envelope fields: the reading side for a stranger's schema, which lacks them.

    With `name`, for a schema of that full name. Avro resolves by the reader's own names; of a writer that was renamed after
    this reader was made only the writer knows that both are one. Whoever reads it has seen that, by its aliases.
    """
    kept = [field for field in reader.schema["fields"] if field["name"] not in fields]
    schema = reader.schema | {"fields": kept}
    if name and name not in (reader.name, *reader.aliases):
        schema["aliases"] = [*schema.get("aliases", ()), name]
    return writer(schema)


def decode(value: bytes, written: Writer, reader: Writer | None = None) -> dict[str, Any]:
    """All fields of a record's value, written with `written`, as `reader` (default: the same) wants them.

    Raises Poison when the bytes are not what the schema says, trailing bytes included.
    """
    data = BytesIO(value)
    data.seek(framing.body_at(value))
    try:
        fields = fastavro.schemaless_reader(data, written.parsed, reader.parsed if reader else None)
    except Exception as error:
        raise Poison("undecodable", f"not a {written.name}: {type(error).__name__} {_first_line(error)}") from error
    if data.tell() != len(value):
        raise Poison("undecodable", f"not a {written.name}: {len(value) - data.tell()} bytes too many")
    return cast(dict[str, Any], fields)


def to_json(schema: Schema) -> str:
    """The schema as it stands in its .avsc file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _first_line(error: Exception) -> str:
    """What is wrong, for people. A user's validator may raise anything, whose words may raise in turn."""
    try:
        if isinstance(error, ValidationError):
            detail = error.errors()[0]
            return f"field {'.'.join(map(str, detail['loc'])) or '(all)'}: {detail['msg']}"
        return (str(error).splitlines() or [""])[0][:500]
    except Exception:  # noqa: BLE001  whatever it is, the record is poison for the first error
        return type(error).__name__
