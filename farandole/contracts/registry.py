"""A Schema Registry, through Confluent's client. The only module that imports confluent_kafka.schema_registry."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from farandole.contracts.codec import Contract
from farandole.contracts.envelope_fields import Schema
from farandole.errors import ConfigurationError, Poison, Unreachable
from farandole.settings import Settings


def subject(settings: Settings, topic: str, name: str) -> str:
    """What the registry calls a schema: by its topic as the broker calls it, by its full Avro name, or by both."""
    return {"topic": f"{topic}-value", "record": name, "topic-record": f"{topic}-{name}"}[settings.subjects]


def check_subjects(settings: Settings, contracts: Iterable[Contract]) -> None:
    """Raise ConfigurationError where two event types would be versions of one subject."""
    taken: dict[str, str] = {}
    for made in contracts:
        wanted = subject(settings, settings.topic(made.topic), made.writer.name)
        other = taken.setdefault(wanted, made.writer.name)
        if other != made.writer.name:
            raise ConfigurationError(
                f"{other} and {made.writer.name} lie on one topic, and would be versions of one subject, {wanted}: set "
                "FARANDOLE_SUBJECTS=topic-record"
            )


class Registry:
    """A Schema Registry. Safe for threads."""

    def __init__(self, settings: Settings) -> None:
        from confluent_kafka.schema_registry import SchemaRegistryClient

        assert settings.schema_registry_url
        self._client = SchemaRegistryClient({"url": settings.schema_registry_url.get_secret_value()})

    def schema(self, number: int) -> Schema:
        """The schema with an id. Raises Poison("unknown_schema"), or Unreachable when the registry does not answer."""
        found: Schema = json.loads(self._ask(number, self._client.get_schema, number).schema_str)
        return found

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema under a subject; its id."""
        from confluent_kafka.schema_registry import Schema as Registered

        return int(self._ask(0, self._client.register_schema, subject, Registered(json.dumps(schema), "AVRO")))

    def find(self, subject: str, schema: Schema) -> int:
        """The id of a schema that was registered under a subject."""
        from confluent_kafka.schema_registry import Schema as Registered

        return int(self._ask(0, self._client.lookup_schema, subject, Registered(json.dumps(schema), "AVRO")).schema_id)

    def _ask(self, number: int, call: Any, *given: Any) -> Any:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            return call(*given)
        except SchemaRegistryError as error:
            if error.http_status_code == 404:
                raise Poison("unknown_schema", f"schema id {number} is not in the registry") from error
            raise ConfigurationError(f"the Schema Registry refused: {error}") from error
        except Exception as error:
            raise Unreachable(f"the Schema Registry does not answer: {error}") from error
