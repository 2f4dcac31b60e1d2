"""A Schema Registry: the ids of schemas, and the schemas of ids."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from farandole.contracts.avro import full_name, last
from farandole.contracts.codec import Contract
from farandole.contracts.envelope_fields import Schema
from farandole.contracts.registry import references
from farandole.errors import ConfigurationError, Poison, Unreachable
from farandole.settings import Settings

if TYPE_CHECKING:
    from farandole.contracts.registry.client import Registered

log = logging.getLogger("farandole.schemas")

T = TypeVar("T")

#: Producers and consumers are deployed in any order, and the log is read again from its beginning.
COMPATIBILITY = "FULL_TRANSITIVE"
#: Schemas that one schema may refer to, those included that they refer to: each is a request.
_REFERENCES = 200


class Registry:
    """A Schema Registry. Safe for threads. Each call asks anew but for what the registry has said already."""

    def __init__(self, settings: Settings) -> None:
        """Asks nothing yet. Raises ConfigurationError for a wrong SCHEMA_REGISTRY_URL, or a client not installed."""
        if settings.schema_registry_url is None:
            raise ConfigurationError("no schema registry: set SCHEMA_REGISTRY_URL (http://host:port)")
        try:
            from farandole.contracts.registry.client import Incompatible, NotARegistry, RegistryClient
        except ImportError as error:
            raise ConfigurationError(
                f"SCHEMA_REGISTRY_URL is set, but the registry's client is not installed ({error}): "
                "pip install 'farandole[registry]'"
            ) from error
        self._client = RegistryClient(settings.schema_registry_url.get_secret_value())
        self._no_registry = NotARegistry
        self._incompatible = Incompatible

    @property
    def url(self) -> str:
        """Its address without user and password."""
        return self._client.url

    def schema(self, number: int) -> Schema:
        """The schema with the id `number`, JSON-ready, what it refers to written out in it.

        Raises Poison("unknown_schema") when the registry has none, or one that is no Avro record, and Unreachable when it
        does not answer.
        """
        what = f"schema id {number} in the registry at {self.url}"
        found = self._read(partial(self._client.by_id, number))
        if found is None:
            raise Poison("unknown_schema", f"schema id {number} is not in the registry at {self.url}")
        if found.kind != "AVRO":
            raise Poison("unknown_schema", f"{what} is of type {found.kind}; expected AVRO")
        try:
            schema = json.loads(found.text)
            if found.references:
                schema = references.inlined(schema, self._others(found, what))
        except (ValueError, RecursionError) as error:
            raise Poison("unknown_schema", f"{what} is not JSON: {error}") from error
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise Poison("unknown_schema", f"{what} is no record; expected the schema of one event type")
        return schema

    def register(self, subject: str, schema: Schema) -> int:
        """The id of `schema`, registered under `subject` if it was not; the subject's compatibility is set first.

        Raises ConfigurationError with the registry's reasons when it refuses, and Unreachable when it does not answer.
        """
        level = self._client.compatibility(subject)
        if level != COMPATIBILITY:
            self._client.set_compatibility(subject, COMPATIBILITY)
            log.info("subject_compatibility subject=%s is=%s was=%s", subject, COMPATIBILITY, level or "unset")
        try:
            return self._client.register(subject, _text(schema))
        except self._incompatible as refused:
            raise ConfigurationError(f"{refused}; {_instead(schema)}") from refused

    def find(self, subject: str, schema: Schema) -> int:
        """The id of `schema` under `subject`, where only `farandole schemas publish` registers.

        Raises ConfigurationError when it is not registered there, and Unreachable when the registry does not answer.
        """
        found = self._client.lookup(subject, _text(schema))
        if found is None:
            raise ConfigurationError(
                f"schema {full_name(schema)} is not registered under subject {subject} in the registry at {self.url}, and "
                "FARANDOLE_REGISTER_SCHEMAS is false: run `farandole schemas publish`"
            )
        return found

    def close(self) -> None:
        """Close its connections; for a registry that is asked once."""
        self._client.close()

    def _others(self, found: Registered, what: str) -> list[Any]:
        """The schemas that `found` refers to, and those that they refer to."""
        met: dict[tuple[str, int], Any] = {}
        wanted = list(found.references)
        while wanted:
            subject, version = place = wanted.pop(0)
            if place in met:
                continue
            if len(met) == _REFERENCES:
                raise Poison("unknown_schema", f"{what} refers to more than {_REFERENCES} other schemas")
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
    """What the registry calls a schema: by its topic as the broker calls it, by its full Avro name, or by both."""
    return {"topic": f"{topic}-value", "record": name, "topic-record": f"{topic}-{name}"}[settings.subjects]


def check_subjects(settings: Settings, contracts: Iterable[Contract]) -> None:
    """Raise ConfigurationError where two event types would be versions of one subject."""
    taken: dict[str, str] = {}
    for made in contracts:
        topic = settings.topic(made.topic)
        wanted = subject(settings, topic, made.writer.name)
        other = taken.setdefault(wanted, made.writer.name)
        if other != made.writer.name:
            raise ConfigurationError(
                f"events {other} and {made.writer.name} lie on one topic, {topic}, and would be versions of one subject, "
                f"{wanted}: set FARANDOLE_SUBJECTS=topic-record (or record), or give each a topic of its own"
            )


def _instead(schema: Schema) -> str:
    """What to do where a registry refuses what `farandole schemas check` allows."""
    if schema.get("aliases"):
        earlier = last(schema["aliases"][-1])
        return (
            f"registries take a renamed event for another one: give its class the name it had (name={earlier!r}) in place of "
            "the alias, or set FARANDOLE_SUBJECTS=topic-record for all programs of the flow"
        )
    return "if no reader of that version runs any more (`farandole schemas retire`), delete it from the subject, too"


def _text(schema: Schema) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
