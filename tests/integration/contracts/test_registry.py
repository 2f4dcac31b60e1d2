"""The registry client on a real Schema Registry: ids, races, references, refusals, and a registry that goes away."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from confluent_kafka.schema_registry import Schema as Text
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from pydantic import SecretStr

from farandole import topics
from farandole.contracts import codec, framing, schema_log
from farandole.contracts.deriving import derive
from farandole.contracts.lookup import Schemas
from farandole.contracts.registry.registry import Registry
from farandole.contracts.schema_log import SCHEMA_TOPIC
from farandole.errors import ConfigurationError, Poison, Unreachable
from farandole.settings import Settings
from tests.integration.contracts.door import Door


def settings(url: str, **more: Any) -> Settings:
    """With this registry, whatever the environment says."""
    return Settings().model_copy(update={"schema_registry_url": SecretStr(url), **more})


def beside(farandole_settings: Settings, url: str) -> Settings:
    """With a broker, and an empty schema topic on it."""
    found = farandole_settings.model_copy(update={"schema_registry_url": SecretStr(url)})
    topics.ensure(found, [one for one in topics.of_events(found, ()) if one.name == SCHEMA_TOPIC])
    return found


@pytest.fixture
def door(farandole_registry: str) -> Iterator[Door]:
    at = urlsplit(farandole_registry)
    with Door(at.hostname or "", at.port or 0) as made:
        yield made


@pytest.fixture
def through(farandole_registry: str, door: Door) -> str:
    """The registry's address by way of the door."""
    return f"http://127.0.0.1:{door.port}{urlsplit(farandole_registry).path}"


@pytest.fixture
def word() -> str:
    """A word that no other test has: subjects and schemas are the whole run's."""
    return f"t{secrets.token_hex(4)}"


@pytest.fixture
def bare(farandole_registry: str) -> SchemaRegistryClient:
    """The registry as other teams see it."""
    return SchemaRegistryClient({"url": farandole_registry})


def record(name: str, *fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields], **more}


def test_a_registered_schema_comes_back_with_all_it_says_of_its_event(farandole_registry: str, word: str) -> None:
    schema = record(f"jobs.{word}", ("x", "string"), doc="What.", topic="jobs.x", stage="x", terminal="done")
    schema["fields"][0] |= {"personal": True, "doc": "Whose."}
    id = Registry(settings(farandole_registry)).register(f"{word}-value", schema)
    found = Registry(settings(farandole_registry)).schema(id)
    assert {key: found[key] for key in ("doc", "topic", "stage", "terminal", "fields")} == {
        key: schema[key] for key in ("doc", "topic", "stage", "terminal", "fields")
    }
    assert codec.writer(found).fingerprint == codec.writer(schema).fingerprint
    assert codec.writer(found).name == f"jobs.{word}"


def test_the_subject_asks_for_full_transitive_before_its_first_schema(
    farandole_registry: str, bare: SchemaRegistryClient, word: str
) -> None:
    Registry(settings(farandole_registry)).register(f"{word}-value", record(f"jobs.{word}", ("x", "string")))
    assert bare.get_compatibility(f"{word}-value") == "FULL_TRANSITIVE"
    bare.set_compatibility(f"{word}-value", "BACKWARD")
    Registry(settings(farandole_registry)).register(f"{word}-value", record(f"jobs.{word}", ("x", "string")))
    assert bare.get_compatibility(f"{word}-value") == "FULL_TRANSITIVE"


def test_what_breaks_somebody_is_refused_with_the_registrys_reasons(farandole_registry: str, word: str) -> None:
    registry = Registry(settings(farandole_registry))
    registry.register(f"{word}-value", record(f"jobs.{word}", ("x", "string")))
    with pytest.raises(ConfigurationError, match=rf"subject {word}-value.* incompatible .*/fields/0/type") as error:
        registry.register(f"{word}-value", record(f"jobs.{word}", ("x", "int")))
    assert "Exception" not in str(error.value)
    assert str(error.value).endswith("(`farandole schemas retire`), delete it from the subject, too")


def test_a_renamed_event_is_refused_with_what_to_do_and_keeps_its_name_or_has_a_subject_of_its_own(
    farandole_registry: str, word: str
) -> None:
    """Registries know no aliases of a later version; our own readers do."""
    registry, fields = Registry(settings(farandole_registry)), [("x", "string")]
    registry.register(f"{word}-value", record(f"jobs.{word}", *fields))
    renamed = record("jobs.New", *fields, aliases=["jobs.Older", word])
    with pytest.raises(ConfigurationError, match=rf"renamed event .*name='{word}'.*FARANDOLE_SUBJECTS=topic-record"):
        registry.register(f"{word}-value", renamed)
    registry.register(f"{word}-jobs.New", renamed)
    more = {"name": "y", "type": ["null", "int"], "default": None}
    kept = record(f"jobs.{word}", *fields)
    registry.register(f"{word}-value", kept | {"fields": [*kept["fields"], more]})


def test_a_schema_that_is_not_registered_is_named_with_the_command_that_does(
    farandole_registry: str, word: str
) -> None:
    schema = record(f"jobs.{word}", ("x", "string"))
    reading = Registry(settings(farandole_registry, register_schemas=False))
    with pytest.raises(
        ConfigurationError, match=rf"jobs\.{word} is not registered under subject {word}-value .*publish"
    ):
        reading.find(f"{word}-value", schema)
    id = Registry(settings(farandole_registry)).register(f"{word}-value", schema)
    assert reading.find(f"{word}-value", schema) == id
    other = record(f"jobs.{word}", ("x", "string"), ("y", ["null", "int"]))
    with pytest.raises(ConfigurationError, match="not registered"):
        reading.find(f"{word}-value", other)


REGISTER = """
import json, multiprocessing, sys
from pydantic import SecretStr
from farandole.contracts.registry import client as registry_client
from farandole.contracts.lookup import Schemas
from farandole.contracts.registry.registry import Registry
from farandole.settings import Settings
url, subject, schema = sys.argv[1:]
forking = multiprocessing.get_context("fork")
ready, ids = forking.Barrier(8), forking.SimpleQueue()
def agent():
    registry = Registry(Settings().model_copy(update={"schema_registry_url": SecretStr(url)}))
    ready.wait(30)
    ids.put(registry.register(subject, json.loads(schema)))
agents = [forking.Process(target=agent) for _ in range(8)]
for each in agents:
    each.start()
for each in agents:
    each.join(60)
print([each.exitcode for each in agents], *{ids.get() for each in agents if each.exitcode == 0})
"""


def test_agents_that_register_at_once_get_one_id(
    farandole_registry: str, bare: SchemaRegistryClient, word: str
) -> None:
    """Eight processes, one new subject, one new schema."""
    arguments = [farandole_registry, f"{word}-value", json.dumps(record(f"jobs.{word}", ("x", "string")))]
    done = subprocess.run(
        [sys.executable, "-c", REGISTER, *arguments], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.stdout == f"{[0] * 8} {bare.get_latest_version(f'{word}-value').schema_id}\n", done.stderr
    assert bare.get_versions(f"{word}-value") == [1]


def test_an_id_is_asked_for_once_and_one_that_is_not_there_once_in_a_while(
    farandole_settings: Settings, through: str, door: Door, word: str
) -> None:
    """Case: id 999999, in a stream of records, by many threads."""
    schema = record(f"jobs.{word}", ("x", "string"))
    known, unknown = (
        framing.confluent(Registry(settings(through)).register(f"{word}-value", schema)),
        framing.confluent(999_999),
    )
    now = 0.0
    schemas = Schemas(beside(farandole_settings, through), clock=lambda: now)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: schemas.learn({known, unknown}), range(400)))
    error = _poison(lambda: schemas.writer(unknown))
    assert (error.cause, str(error)) == ("unknown_schema", f"schema id 999999 is not in the registry at {through}")
    assert schemas.writer(known).name == f"jobs.{word}"
    now = 3600.0
    schemas.learn({known, unknown})
    assert door.count("/schemas/ids/999999") == 2
    assert door.count("/schemas/ids/") == 3


def test_what_other_teams_schemas_refer_to_is_part_of_them(
    farandole_registry: str, bare: SchemaRegistryClient, word: str
) -> None:
    """Nested references, and names without their namespace."""
    kind = {"type": "enum", "name": "Kind", "symbols": ["ROAD", "LANE"]}
    street = record(f"{word}.Street", ("called", "string"), ("kind", kind))
    address = record(f"{word}.Address", ("street", "Street"), ("kind", ["null", f"{word}.Kind"]))
    order = record(f"{word}.Order", ("to", {"type": "array", "items": "Address"}), ("back", f"{word}.Address"))
    bare.register_schema(f"{word}-street", Text(json.dumps(street)))
    to_street = SchemaReference(f"{word}.Street", f"{word}-street", 1)
    bare.register_schema(f"{word}-address", Text(json.dumps(address), references=[to_street]))
    to_address = SchemaReference(f"{word}.Address", f"{word}-address", 1)
    id = bare.register_schema(f"{word}-value", Text(json.dumps(order), references=[to_address]))
    written = codec.writer(Registry(settings(farandole_registry)).schema(id))
    assert written.name == f"{word}.Order"
    whole = record(f"{word}.Order", ("to", {"type": "array", "items": address}), ("back", "Address"))
    whole["fields"][0]["type"]["items"] = record(
        f"{word}.Address", ("street", street), ("kind", ["null", f"{word}.Kind"])
    )
    assert written.fingerprint == codec.writer(whole).fingerprint


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("JSON", '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "title": "%s"}'),
        ("PROTOBUF", 'syntax = "proto3"; message %s { string x = 1; }'),
        ("AVRO", '{"type": "enum", "name": "%s", "symbols": ["A"]}'),
    ],
)
def test_a_schema_that_is_no_avro_record_is_poison(
    farandole_registry: str, bare: SchemaRegistryClient, word: str, kind: str, text: str
) -> None:
    id = bare.register_schema(f"{word}-value", Text(text % word, kind))
    error = _poison(lambda: Registry(settings(farandole_registry)).schema(id))
    assert error.cause == "unknown_schema"
    assert f"schema id {id} in the registry at {farandole_registry}" in str(error)


def test_a_registry_that_went_away_is_unreachable_until_it_is_back(through: str, door: Door, word: str) -> None:
    schema = record(f"jobs.{word}", ("x", "string"))
    registry = Registry(settings(through))
    calls: list[Callable[[], object]] = [
        lambda: registry.schema(999_998),
        lambda: registry.register(f"{word}-value", schema),
        lambda: registry.find(f"{word}-other", schema),
    ]
    _poison(lambda: registry.schema(999_997))  # a connection is open
    door.shut()
    for call in calls * 3:
        with pytest.raises(Unreachable, match=rf"the schema registry at {through} does not answer"):
            call()
    door.unlock()
    id = registry.register(f"{word}-value", schema)
    assert registry.schema(id)["name"] == word
    assert _poison(lambda: registry.schema(999_998)).cause == "unknown_schema"


def test_an_ingest_type_takes_schemas_with_and_without_envelope(farandole_registry: str, word: str) -> None:
    """FULL_TRANSITIVE must not shut out a stranger, whose schema has no envelope, whoever comes first."""
    from schemas.jobs import Submitted

    both = [derive(Submitted, "jobs"), derive(Submitted, "jobs", envelope=False)]
    registry = Registry(settings(farandole_registry))
    for subject, order in ((f"{word}-a", both), (f"{word}-b", both[::-1])):
        assert len({registry.register(subject, schema) for schema in order}) == 2


def test_what_a_strangers_event_means_is_read_from_the_topic_also_by_who_has_read_nothing_yet(
    farandole_settings: Settings, farandole_registry: str, bare: SchemaRegistryClient, word: str
) -> None:
    """A projector that starts, and the first record is of Confluent's AvroSerializer."""
    ours, theirs = (
        record(f"jobs.{word}", ("x", "string"), topic="jobs.x", stage="told"),
        record(f"jobs.{word}", ("x", "string")),
    )
    known = beside(farandole_settings, farandole_registry)
    schema_log.publish(
        known, [codec.writer(ours | {"fields": [*ours["fields"], {"name": "y", "type": "int", "default": 0}]})]
    )
    key = framing.confluent(bare.register_schema(f"{word}-value", Text(json.dumps(theirs))))
    schemas = Schemas(known)
    schemas.learn([key])
    assert (schemas.writer(key).stage, schemas.meaning(schemas.writer(key)).stage) == (None, "told")


def test_the_topic_says_what_events_mean_now_where_the_registry_keeps_the_first_text(
    farandole_settings: Settings, farandole_registry: str, word: str
) -> None:
    """Schemas that differ in what Avro does not know have one id on Apicurio, and the text of the first."""
    before, now = (record(f"jobs.{word}", ("x", "string"), topic="jobs.x", stage=stage) for stage in ("before", "now"))
    known, registry = beside(farandole_settings, farandole_registry), Registry(settings(farandole_registry))
    first, second = registry.register(f"{word}-value", before), registry.register(f"{word}-value", now)
    schema_log.publish(known, [codec.writer(now)])
    keys = [framing.confluent(first), framing.confluent(second)]
    schemas = Schemas(known)
    schemas.learn(keys)
    assert {schemas.writer(key).stage for key in keys} == {"now"}


def _poison(call: Callable[[], object]) -> Poison:
    with pytest.raises(Poison) as error:
        call()
    return error.value
