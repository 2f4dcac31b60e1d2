"""An event to Avro bytes and back. The only module that imports fastavro."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, cast

import fastavro
from fastavro.schema import SchemaParseException, fingerprint, to_parsing_canonical_form
from pydantic import ValidationError

from farandole.contracts import framing
from farandole.contracts.avro import full
from farandole.contracts.deriving import derive
from farandole.contracts.envelope_fields import ENVELOPE, ENVELOPE_FIELDS, LEFT_EMPTY, Schema
from farandole.contracts.fields.annotations import kind_of
from farandole.contracts.fields.scalars import Misfit
from farandole.contracts.wire import binary, strict
from farandole.contracts.wire.adapting import adapter
from farandole.contracts.wire.json_form import Form, form_of
from farandole.contracts.wire.packing import Write
from farandole.contracts.wire.raw import Traits, plain
from farandole.contracts.wire.reading import Read, Reading, validated
from farandole.contracts.wire.strict import Writing, check_depth
from farandole.contracts.wire.units import disagreement
from farandole.contracts.wire.unpacking import Read as Unpack
from farandole.errors import ConfigurationError, Poison
from farandole.event import Event


@dataclass(frozen=True, slots=True, eq=False)
class Writer:
    """A schema that records are written with: how to read them, and what the schema says of the event."""

    schema: Schema
    parsed: Any  #: fastavro's form without logical types: ids stay strings, times longs, decimals bytes
    meant: Any  #: the same with logical types
    fingerprint: bytes  #: CRC-64-AVRO, 8 bytes, little-endian as on the wire
    name: str  #: full Avro name
    aliases: tuple[str, ...]  #: the full names that it had before, the first one first
    missing: tuple[str, ...]  #: envelope fields it lacks: a stranger's schema
    odd: str | None  #: an envelope field that it has in another unit
    recursive: bool  #: a record in it may hold one of its own kind
    read: Unpack  #: of a record's fields from its bytes

    @property
    def declared(self) -> bool:
        """Whether the schema says what its event means; a stranger's, or a code generator's, may hold fields alone."""
        return "topic" in self.schema

    @property
    def identity(self) -> str:
        """The full name it had at first. Part of ids: a class that is renamed derives the same ids as before."""
        return self.aliases[0] if self.aliases else self.name

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
        parsed = fastavro.parse_schema(plain(schema))
        if not isinstance(parsed, dict) or parsed.get("type") != "record":
            raise ConfigurationError("not an Avro record schema")
        meant = fastavro.parse_schema(copy.deepcopy(schema))
        canonical = to_parsing_canonical_form(copy.deepcopy(schema))
        digest = bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))
        names = {field["name"] for field in schema["fields"]}
        name = str(parsed["name"])
        aliases = _aliases(schema.get("aliases", []), name)
        odd = disagreement(meant, {"type": "record", "name": "Envelope", "fields": ENVELOPE})
        recursive, read = Traits(parsed).recursive, binary.reader(parsed)
    except (SchemaParseException, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ConfigurationError(f"not an Avro schema: {error}") from error
    missing = tuple(name for name in ENVELOPE_FIELDS if name not in names)
    return Writer(schema, parsed, meant, digest, name, aliases, missing, odd, recursive, read)


def _aliases(given: Any, name: str) -> tuple[str, ...]:
    """The aliases of `name` in full, in its namespace where they name none. Raises ValueError for what are none."""
    if not isinstance(given, list) or not all(isinstance(alias, str) for alias in given):
        raise ValueError(f"aliases is {given!s:.60}; expected a list of names")
    return tuple(full(alias, name.rpartition(".")[0]) for alias in given)


@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """An event class bound to its flow: the schema it is written with and the bytes every record of it starts with."""

    event: type[Event]
    writer: Writer
    topic: str  #: without the namespace
    header: bytes
    writes: Write  #: a payload to bytes, strictly
    reads: Read  #: the payload's fields as the class takes them, from all that were decoded
    headers: tuple[tuple[str, bytes], ...] = ()  #: Kafka headers that go with every record of it

    def registered(self, number: int) -> Contract:
        """The same in Confluent's framing, under its id in the Schema Registry."""
        header = framing.schema_header(number, self.writer.fingerprint)
        return replace(self, header=framing.confluent(number), headers=(header,))

    def encode(self, envelope: dict[str, Any], payload: Event) -> bytes:
        """The record's value. Raises ConfigurationError naming event and field of a value that does not fit."""
        if self.event.__event__.view:
            raise ConfigurationError(f"event {self.event.__name__} is a view of {self.writer.name}: it is read only")
        try:
            if self.writer.recursive:
                check_depth(payload)
            return b"".join((self.header, strict.envelope(envelope), self.writes(payload)))
        except Misfit as misfit:
            found = f"{self.event.__name__}{misfit.path}: {misfit}"
        except Exception as error:  # noqa: BLE001  a user's subclass of str, or time zone, may do anything
            found = f"{type(error).__name__}: {_first_line(error)}"
        raise ConfigurationError(f"event {self.writer.name} does not fit its schema: {found}")

    def read(self, fields: dict[str, Any]) -> Event:
        """The payload from decoded `fields` (envelope fields are left out). Raises Poison naming the wrong field."""
        try:
            return cast(Event, validated(self.event, self.reads(fields)))
        except Misfit as misfit:
            raise Poison("invalid", f"{self.writer.name}: field {misfit.path[1:]}: {misfit}") from misfit
        except Exception as error:
            raise Poison("invalid", f"{self.writer.name}: {_first_line(error)}") from error


_ENVELOPE = frozenset(ENVELOPE_FIELDS)


@cache
def contract(event: type[Event], flow: str) -> Contract:
    """The contract of `event` in `flow`; one object each, so that two uses of a class agree."""
    made = writer(derive(event, flow))
    writing, kind = Writing(), kind_of(event)
    header = framing.single_object(made.fingerprint)
    return Contract(event, made, made.schema["topic"], header, writing.of(kind), Reading().payload(kind))


@cache
def lenient(reader: Writer, missing: tuple[str, ...]) -> Writer:
    """`reader` for strangers' schemas: less the envelope fields that are missing there, null where one may be left empty."""
    kept = [field for field in reader.schema["fields"] if field["name"] not in missing]
    fields = [field | ({"type": [field["type"], "null"]} if field["name"] in LEFT_EMPTY else {}) for field in kept]
    return writer(reader.schema | {"fields": fields})


@cache
def _also_called(reader: Writer, name: str) -> Writer:
    """`reader`, which takes records of that name for its own too."""
    return writer(reader.schema | {"aliases": [*reader.schema.get("aliases", ()), name]})


def decode(value: bytes, written: Writer, reader: Writer | None = None) -> dict[str, Any]:
    """All fields of a record's value, written with `written`, as `reader` (default: the same) wants them.

    Values are Avro's own, logical types are not applied; a record that was one of several in a union comes as (full name,
    fields). A schema that was renamed is read by the one before when its aliases hold that name. Raises Poison when the
    bytes are not what the schema says, trailing bytes included.
    """
    if reader and reader.name != written.name and reader.name in written.aliases:
        reader = _also_called(reader, written.name)
    if reader and (wrong := _disagreement(written, reader)):
        raise Poison("invalid", f"{written.name}: {wrong}")
    other = reader is not None and reader.fingerprint != written.fingerprint
    try:
        read = _adapted(written, reader) if reader and other else written.read
        fields, end = read(value, framing.body_at(value))
    except Misfit as misfit:
        raise Poison("undecodable", f"not a {written.name}: field {misfit.path[1:]}: {misfit}") from misfit
    except RecursionError as error:
        raise Poison("undecodable", f"not a {written.name}: records lie in one another too many times") from error
    if end != len(value):
        wrong = f"{len(value) - end} bytes too many" if end < len(value) else "the bytes end in the middle"
        raise Poison("undecodable", f"not a {written.name}: {wrong}")
    return cast(dict[str, Any], fields)


@lru_cache(1000)
def _adapted(written: Writer, reader: Writer) -> Unpack:
    return adapter(written.parsed, reader.parsed)


@lru_cache(1000)
def _disagreement(written: Writer, reader: Writer) -> str | None:
    return disagreement(written.meant, reader.meant)


@lru_cache(1000)
def json_form(written: Writer) -> Form:
    """What gives a payload written with `written`, as `decode` brings it, its JSON form, in place."""
    fields = [field for field in written.meant["fields"] if field["name"] not in _ENVELOPE]
    return form_of(written.meant | {"fields": fields})


@lru_cache(1000)
def plain_json(written: Writer) -> bool:
    """Whether that form is of texts, whole numbers and truths alone: no number has a fraction, and no bytes are left."""
    return not re.search(r'"(float|double|bytes|fixed)"', json.dumps(written.schema["fields"]))


def envelope_first(written: Writer) -> tuple[Unpack, Unpack] | None:
    """Readers of the fields from emitted_by to tenant, and of the payload; None where the envelope is another than ours,
    or does not come first."""
    fields, ours = written.parsed["fields"], len(ENVELOPE)
    if written.recursive or [(field["name"], field["type"]) for field in fields[:ours]] != _our_envelope():
        return None
    begin = ENVELOPE_FIELDS.index("emitted_by")
    rest, payload = (binary.reader(written.parsed | {"fields": part}) for part in (fields[begin:ours], fields[ours:]))
    return rest, payload


@cache
def _our_envelope() -> list[tuple[str, Any]]:
    parsed = cast(dict[str, Any], fastavro.parse_schema(plain({"type": "record", "name": "E", "fields": [*ENVELOPE]})))
    return [(field["name"], field["type"]) for field in parsed["fields"]]


def to_json(schema: Schema) -> str:
    """The schema as it stands in its .avsc file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _first_line(error: Exception) -> str:
    """What is wrong, for people. A user's validator may raise anything, whose words may raise in turn."""
    try:
        if isinstance(error, ValidationError):
            detail = error.errors()[0]
            told = f"field {'.'.join(map(str, detail['loc'])) or '(all)'}: {detail['msg']}"
        else:
            told = str(error)
        return (told.splitlines() or [""])[0][:500]
    except Exception:  # noqa: BLE001  whatever it is, the record is poison for the first error
        return type(error).__name__
