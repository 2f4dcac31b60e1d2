"""Schemas are looked up in the schema topic when they are met, and what is not there is not asked for again and again."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from farandole import Event, topics
from farandole.contracts import framing, publishing, schema_log
from farandole.contracts.codec import Contract, Writer, contract
from farandole.contracts.lookup import ABSENT_FOR, Schemas
from farandole.contracts.schema_log import SCHEMA_TOPIC, SchemaLog
from farandole.errors import FarandoleError, Poison, Unreachable
from farandole.settings import Settings
from tests.kafka_log import KafkaLog


class Asked(Event, topic="jobs.asked"):
    text: str


class Answered(Event, topic="jobs.answered"):
    text: str


class Clock:
    """Seconds, as the test says."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def readings(farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A schema topic; one entry for each time it is really read."""
    topics.ensure(
        farandole_settings, [one for one in topics.of_events(farandole_settings, ()) if one.name == SCHEMA_TOPIC]
    )
    found: list[str] = []
    read_on = SchemaLog.read_on

    def counted(log: SchemaLog) -> None:
        found.append(threading.current_thread().name)
        read_on(log)

    monkeypatch.setattr(SchemaLog, "read_on", counted)
    yield found


def key_of(made: Contract, number: int | None = None) -> bytes:
    """How a record of it names its schema; with an id as in Confluent's framing."""
    fingerprint = made.writer.fingerprint
    return framing.single_object(fingerprint) if number is None else framing.confluent(number) + fingerprint


def why(schemas: Schemas, key: bytes) -> str:
    with pytest.raises(Poison) as poison:
        schemas.writer(key)
    assert poison.value.cause == "unknown_schema"
    return str(poison.value)


def test_an_absent_schema_is_asked_for_once_in_a_while_and_found_when_it_has_come(
    farandole_settings: Settings, readings: list[str]
) -> None:
    clock = Clock()
    schemas, asked, answered = Schemas(farandole_settings, clock), contract(Asked, "jobs"), contract(Answered, "jobs")
    key = key_of(asked)
    assert "was not looked up" in why(schemas, key)
    for _ in range(3):
        schemas.learn([key])
        assert asked.writer.fingerprint.hex() in why(schemas, key)
    assert len(readings) == 1

    schema_log.publish(farandole_settings, [asked])
    clock.now += ABSENT_FOR - 0.1
    assert schemas.unknown([key]) == set()
    schemas.learn([key])
    assert (len(readings), why(schemas, key)) == (1, f"schema {key[2:].hex()} is not in topic {schemas._log.topic}")
    clock.now += 0.1
    assert schemas.unknown([key, key_of(answered)]) == {key, key_of(answered)}
    schemas.learn([key])
    assert (len(readings), schemas.writer(key).name) == (2, "jobs.Asked")

    schemas.learn([key, key_of(answered)])
    schemas.learn([key_of(answered)])
    assert len(readings) == 3, "another one that is absent is asked for by itself"
    assert schemas.writer(key).name == "jobs.Asked"


def test_a_known_schema_is_not_asked_for_in_either_format(farandole_settings: Settings, readings: list[str]) -> None:
    made = contract(Asked, "jobs")
    schemas = Schemas(farandole_settings)
    schemas.add(made.writer)
    schemas.learn([key_of(made), key_of(made, 7)])
    assert schemas.writer(key_of(made, 7)) is schemas.writer(key_of(made)) is made.writer
    assert readings == []


def test_an_id_with_its_fingerprint_is_found_in_the_topic_and_without_a_registry_an_id_alone_is_poison(
    farandole_settings: Settings, readings: list[str]
) -> None:
    """Case K4: the id 999999 where no registry is set."""
    made = contract(Asked, "jobs")
    schema_log.publish(farandole_settings, [made])
    schemas = Schemas(farandole_settings.model_copy(update={"schema_registry_url": None}))
    bare, told = framing.confluent(999_999), key_of(made, 999_999)
    schemas.learn([bare])
    assert readings == [], "the topic knows no ids"
    assert "schema id 999999, and SCHEMA_REGISTRY_URL is not set" in why(schemas, bare)
    schemas.learn([bare, told])
    assert (len(readings), schemas.writer(told).name) == (1, "jobs.Asked")


@pytest.mark.parametrize("published", [True, False])
def test_threads_that_meet_a_schema_at_once_ask_for_it_once(
    farandole_settings: Settings, readings: list[str], monkeypatch: pytest.MonkeyPatch, published: bool
) -> None:
    made = contract(Asked, "jobs")
    if published:
        schema_log.publish(farandole_settings, [made])
    schemas = Schemas(farandole_settings)
    everyone = threading.Barrier(2)
    unknown = Schemas.unknown

    def together(self: Schemas, keys: list[bytes]) -> set[bytes]:
        """Both threads have found it unknown before either of them asks."""
        found = unknown(self, keys)
        if not schemas._lock.locked():
            everyone.wait(20)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Schemas, "unknown", together)
        threads = [threading.Thread(target=schemas.learn, args=([key_of(made)],)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert len(readings) == 1
    assert schemas.unknown([key_of(made)]) == set(), "it is known to be there, or not to be"
    if published:
        assert schemas.writer(key_of(made)).name == "jobs.Asked"


def test_an_outage_is_no_answer(farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken for absent while the topic cannot be read: it is asked again at once."""
    monkeypatch.setattr("farandole.kafka.ANSWER", 0.2)
    schemas = Schemas(farandole_settings.model_copy(update={"kafka_bootstrap_servers": "127.0.0.1:1"}))
    key = key_of(contract(Asked, "jobs"))
    for _ in range(2):
        with pytest.raises(Unreachable):
            schemas.learn([key])
        assert schemas.unknown([key]) == {key}
        assert "was not looked up" in why(schemas, key)


def test_of_thousands_of_absent_schemas_each_is_named_however_long_looking_them_up_takes(
    farandole_settings: Settings, readings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    schemas = Schemas(farandole_settings, clock)
    keys = [framing.single_object(number.to_bytes(8, "big")) for number in range(10_000)]
    find = Schemas._find

    def slowly(held: Schemas, key: bytes) -> Writer:
        clock.now += 0.01  # as a registry does
        return find(held, key)

    monkeypatch.setattr(Schemas, "_find", slowly)
    schemas.learn(keys)
    assert [key for key in keys if key[2:].hex() not in why(schemas, key)] == []
    assert schemas.unknown(keys) == set()
    assert len(readings) == 1
    clock.now += 2 * ABSENT_FOR
    schemas.learn(keys[:1])
    assert len(schemas.unknown(keys)) == len(keys) - 1
    assert "was not looked up" in why(schemas, keys[1]), "what is over is forgotten"


def test_a_schema_topic_that_is_missing_is_named_with_what_creates_it(farandole_settings: Settings) -> None:
    with pytest.raises(Unreachable, match=r"farandole\.schemas is missing: `farandole topics`, or the first agent"):
        SchemaLog(farandole_settings).read_on()
    manual = farandole_settings.model_copy(update={"create_topics": False})
    with pytest.raises(FarandoleError, match=r"topics are missing: .*farandole\.schemas; create them with"):
        publishing.publish(manual, [Asked])


def test_a_schema_topic_that_was_made_again_is_read_whole_however_long_it_is_by_then(
    farandole_settings: Settings, readings: list[str]
) -> None:
    asked, answered = contract(Asked, "jobs"), contract(Answered, "jobs")
    log = SchemaLog(farandole_settings)
    schema_log.publish(farandole_settings, [asked])
    log.read_on()
    log.read_on()
    kafka_log = KafkaLog(farandole_settings.brokers, farandole_settings.namespace)
    kafka_log.delete(SCHEMA_TOPIC)
    topics.ensure(
        farandole_settings, [one for one in topics.of_events(farandole_settings, ()) if one.name == SCHEMA_TOPIC]
    )
    schema_log.publish(farandole_settings, [answered, asked, asked])
    log.read_on()
    assert log.names() == ["jobs.Answered", "jobs.Asked"]
