"""Topics are made as declared, by many at once, and never altered."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from farandole import Event, kafka, topics
from farandole.contracts import publishing
from farandole.contracts.framing import single_object
from farandole.contracts.lookup import Schemas
from farandole.contracts.schema_log import SCHEMA_TOPIC
from farandole.errors import ConfigurationError, FarandoleError, Unreachable
from farandole.flow import agent_files, event_classes, load_agents
from farandole.settings import Settings
from farandole.topics import Wanted, compare, ensure
from tests.unit.projects import project

A = Wanted("jobs.a", 3, {"cleanup.policy": "delete", "retention.ms": "86400000"})


def states(rows: list[topics.Row]) -> set[tuple[str, str]]:
    return {(row.status, row.setting) for row in rows}


def test_a_missing_topic_is_created_and_then_there(farandole_settings: Settings) -> None:
    assert states(compare(farandole_settings, [A])) == {("missing", "")}
    assert states(ensure(farandole_settings, [A])) == {("created", "")}
    assert states(ensure(farandole_settings, [A])) == {("ok", "")}
    assert kafka.check_broker(farandole_settings)[farandole_settings.topic("jobs.a")] == 3


def test_several_at_once_make_one_topic(farandole_settings: Settings) -> None:
    wanted = [Wanted(f"jobs.t{number}", 2) for number in range(4)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: ensure(farandole_settings, wanted), range(6)))
    assert all(row.status in ("created", "ok") for rows in found for row in rows)
    assert states(compare(farandole_settings, wanted)) == {("ok", "")}


def test_what_differs_is_shown_and_left_alone(farandole_settings: Settings) -> None:
    ensure(farandole_settings, [A])
    other = Wanted("jobs.a", 5, {"cleanup.policy": "compact", "retention.ms": "1"})
    for look in (ensure, compare, ensure):
        rows = look(farandole_settings, [other])
        assert [(row.status, row.setting, row.declared, row.found) for row in rows] == [
            ("drift", "partitions", "5", "3"),
            ("drift", "cleanup.policy", "compact", "delete"),
            ("drift", "retention.ms", "1", "86400000"),
        ]
    assert states(compare(farandole_settings, [A])) == {("ok", "")}


def test_more_replicas_than_nodes_is_a_clear_error(farandole_settings: Settings) -> None:
    many = farandole_settings.model_copy(update={"replication": 3})
    with pytest.raises(FarandoleError, match="the broker has 1 node, topics ask for 3 replicas"):
        ensure(many, [A])


def test_no_broker_is_unreachable(farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "ANSWER", 1.0)
    away = farandole_settings.model_copy(update={"kafka_bootstrap_servers": "127.0.0.1:1"})
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        ensure(away, [A])


def test_an_agent_s_topics_are_those_it_reads_and_emits_and_its_dead_letters(
    farandole_settings: Settings, tmp_path: Path
) -> None:
    settings = farandole_settings.model_copy(update={"flow": "orders"})
    found = project(tmp_path, agents={"price": ("Placed", "Priced")})
    wanted = topics.of_agents(settings, load_agents(agent_files(found)).values())
    assert {topic.name for topic in wanted} == {
        "orders.placed", "orders.priced", "orders.failed", "orders.dead_lettered", "price.dead", "price.wake",
        "orders.redriven", "orders.discarded", SCHEMA_TOPIC,
    }  # fmt: skip
    dead = next(topic for topic in wanted if topic.name == "price.dead")
    assert (dead.config["retention.ms"], dead.config["max.message.bytes"]) == ("-1", str(kafka.MAX_DEAD_LETTER_BYTES))
    ensure(settings, wanted)
    assert states(compare(settings, wanted)) == {("ok", "")}


def test_an_event_s_own_partitions_and_retention_win_over_the_settings(farandole_settings: Settings) -> None:
    class Wide(Event, topic="jobs.wide", partitions=12, retention_days=1):
        pass

    class Beside(Event, topic="jobs.wide"):
        pass

    class Clash(Event, topic="jobs.wide", partitions=3):
        pass

    wide = next(topic for topic in topics.of_events(farandole_settings, [Wide, Beside]) if topic.name == "jobs.wide")
    assert (wide.partitions, wide.config["retention.ms"]) == (12, "86400000")
    with pytest.raises(ConfigurationError, match="partitions=12 and partitions=3"):
        topics.of_events(farandole_settings, [Wide, Clash])


def test_published_schemas_are_found_by_their_fingerprint(farandole_settings: Settings, tmp_path: Path) -> None:
    settings = farandole_settings.model_copy(update={"flow": "orders"})
    events = event_classes(project(tmp_path))
    publishing.publish(settings, events)
    written = {single_object(writer.fingerprint): writer.name for writer in publishing.writers(events, "orders")}
    schemas = Schemas(settings)
    schemas.learn(written)
    assert {key: schemas.writer(key).name for key in written} == written
    assert states(compare(settings, [Wanted(SCHEMA_TOPIC, 1, {"cleanup.policy": "compact"})])) == {("ok", "")}
