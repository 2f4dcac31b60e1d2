"""A Schema Registry: the ids of schemas, and the schemas of ids."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from farandole.contracts import references
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS, Schema
from farandole.errors import ConfigurationError, Poison, Unreachable
from farandole.settings import Settings

if TYPE_CHECKING:
    from farandole.contracts.registry_client import Registered

log = logging.getLogger("farandole.schemas")

T = TypeVar("T")

#: Producers and consumers are deployed in any order, and the log is read again from its beginning.
COMPATIBILITY = "FULL_TRANSITIVE"
#: Seconds. An id that the registry does not know is not asked for again meanwhile: one stray producer sends thousands.
UNKNOWN = 10.0
#: Schemas that one schema may refer to, those included that they refer to.
_REFERENCES = 200


class Registry:
    """A Schema Registry. Safe for threads. What it once said of an id is kept as long as the process runs."""

    def __init__(self, settings: Settings) -> None:
        """Asks nothing yet. Raises ConfigurationError for a wrong SCHEMA_REGISTRY_URL, or a client not installed."""
        if settings.schema_registry_url is None:
            raise ConfigurationError("no schema registry: set SCHEMA_REGISTRY_URL (http://host:port)")
        try:
            from farandole.contracts.registry_client import NotARegistry, RegistryClient
        except ImportError as error:
            raise ConfigurationError(
                f"SCHEMA_REGISTRY_URL is set, but the registry's client is not installed ({error}): "
                "pip install 'farandole[registry]'"
            ) from error
        self._client = RegistryClient(settings.schema_registry_url.get_secret_value())
        self._no_registry = NotARegistry
        self._schemas: dict[int, Schema | Poison] = {}
        self._unknown: dict[int, tuple[float, Poison]] = {}  #: and when each is asked for again
        self._ids: dict[tuple[str, str], int] = {}
        self._asking = threading.Lock()
        self._failure: tuple[float, Unreachable] | None = None

    @property
    def url(self) -> str:
        """Its address without user and password."""
        return self._client.url

    def schema(self, id: int) -> Schema:
        """The schema of `id`, JSON-ready, what it refers to written out in it.

        Raises Poison("unknown_schema") when the registry does not know it, Poison("undecodable") when it is no Avro
        record, and Unreachable when the registry does not answer.
        """
        found = self._schemas.get(id)
        if found is None:
            found = self._one_at_a_time(lambda: self._schemas.get(id) or self._fetch(id))
        if isinstance(found, Poison):
            raise Poison(found.cause, str(found))
        return found

    def register(self, subject: str, schema: Schema) -> int:
        """The id of `schema`, registered under `subject` if it was not; the subject's compatibility is set first.

        Raises ConfigurationError with the registry's reasons when it refuses, and Unreachable when it does not answer.
        """
        text = _text(schema)
        if (subject, text) not in self._ids:
            level = self._client.compatibility(subject)
            if level != COMPATIBILITY:
                self._client.set_compatibility(subject, COMPATIBILITY)
                log.info("subject_compatibility subject=%s is=%s was=%s", subject, COMPATIBILITY, level or "unset")
            self._ids[subject, text] = self._client.register(subject, text)
        return self._ids[subject, text]

    def find(self, subject: str, schema: Schema) -> int:
        """The id of `schema` under `subject`, where only `farandole schemas publish` registers.

        Raises ConfigurationError when it is not registered there, and Unreachable when the registry does not answer.
        """
        text = _text(schema)
        if (subject, text) not in self._ids:
            found = self._client.lookup(subject, text)
            if found is None:
                raise ConfigurationError(
                    f"schema {full_name(schema)} is not registered under subject {subject} in the registry at {self.url}, "
                    "and FARANDOLE_REGISTER_SCHEMAS is false: run `farandole schemas publish`"
                )
            self._ids[subject, text] = found
        return self._ids[subject, text]

    def _one_at_a_time(self, call: Callable[[], T]) -> T:
        """What `call` returns. Many threads meet one new id together: one asks, and all share its answer or failure."""
        came = time.monotonic()
        with self._asking:
            if self._failure and self._failure[0] > came:
                raise Unreachable(str(self._failure[1])) from self._failure[1]
            try:
                return call()
            except Unreachable as failure:
                self._failure = (time.monotonic(), failure)
                raise

    def _fetch(self, id: int) -> Schema | Poison:
        now = time.monotonic()
        until, poison = self._unknown.get(id, (now, None))
        if poison and until > now:
            return poison
        found = self._read(partial(self._client.by_id, id))
        made = self._made(id, found)
        if isinstance(made, Poison) and made.cause == "unknown_schema":
            self._unknown = {other: entry for other, entry in self._unknown.items() if entry[0] > now}
            self._unknown[id] = (now + UNKNOWN, made)
        else:
            self._schemas[id] = made
        return made

    def _made(self, id: int, found: Registered | None) -> Schema | Poison:
        """The schema of an answer, or what is wrong with it; but for what is missing that stays so, as ids keep their
        schemas."""
        what = f"schema id {id} in the registry at {self.url}"
        if found is None:
            return Poison("unknown_schema", f"schema id {id} is not in the registry at {self.url}")
        if found.kind != "AVRO":
            return Poison("undecodable", f"{what} is of type {found.kind}; expected AVRO")
        try:
            schema = json.loads(found.text)
            if found.references:
                schema = references.inlined(schema, self._others(found, what))
        except Poison as poison:
            return poison
        except (ValueError, RecursionError) as error:
            return Poison("undecodable", f"{what} is not JSON: {error}")
        if not isinstance(schema, dict) or schema.get("type") != "record":
            return Poison("undecodable", f"{what} is no record; expected one event type")
        return schema

    def _others(self, found: Registered, what: str) -> list[Any]:
        """The schemas that `found` refers to, and those that they refer to."""
        met: dict[tuple[str, int], Any] = {}
        wanted = list(found.references)
        while wanted:
            subject, version = place = wanted.pop(0)
            if place in met:
                continue
            if len(met) == _REFERENCES:
                raise Poison("undecodable", f"{what} refers to more than {_REFERENCES} other schemas")
            other = self._read(partial(self._client.by_version, subject, version))
            if other is None:
                raise Poison(
                    "unknown_schema", f"{what} refers to subject {subject} version {version}, which is not there"
                )
            met[place] = json.loads(other.text)
            wanted.extend(other.references)
        return list(met.values())

    def _read(self, call: Callable[[], T]) -> T:
        """A look-up while records are being read: whatever stands in for a registry that is away is waited out too."""
        try:
            return call()
        except self._no_registry as error:
            raise Unreachable(str(error)) from error


def subject(settings: Settings, topic: str, name: str) -> str:
    """The subject of a record schema with the full name `name` on `topic` (its name on the broker)."""
    match settings.subjects:
        case "topic":
            return f"{topic}-value"
        case "record":
            return name
        case "topic-record":
            return f"{topic}-{name}"


def check_subjects(settings: Settings, events: Iterable[tuple[str, str]]) -> None:
    """Raise ConfigurationError when several event types, pairs of topic and full name, would share one subject."""
    names: dict[str, set[str]] = {}
    for topic, name in events:
        names.setdefault(topic, set()).add(name)
    for topic, found in names.items():
        if settings.subjects == "topic" and len(found) > 1:
            raise ConfigurationError(
                f"topic {topic} carries {len(found)} event types ({', '.join(sorted(found))}), but a subject named after its "
                "topic holds one: set FARANDOLE_SUBJECTS to topic-record or record, or give each type a topic of its own"
            )


def open_to_strangers(schema: Schema) -> Schema:
    """The schema of an ingest type as it is registered: each envelope field has a default, so that a schema without
    envelope is compatible with it. Neither the bytes of a record nor the schema's fingerprint differ."""
    empty: dict[str, Any] = {"string": "", "long": 0}
    fields = [
        field | {"default": empty[field["type"]["type"] if isinstance(field["type"], dict) else field["type"]]}
        if field["name"] in ENVELOPE_FIELDS and "default" not in field
        else field
        for field in schema["fields"]
    ]
    return schema | {"fields": fields}


def full_name(schema: Schema) -> str:
    """The schema's full Avro name."""
    space, name = schema.get("namespace"), str(schema["name"])
    return f"{space}.{name}" if space and "." not in name else name


def _text(schema: Schema) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
