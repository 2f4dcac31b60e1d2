"""The running projector on a real Kafka and Postgres: found topics, kills, outages, gaps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest

from farandole import health, kafka, postgres
from farandole.errors import Stopped
from farandole.kafka import TopicPartition
from farandole.postgres import Connection
from farandole.settings import Settings, load_settings
from farandole.stack.stack import Stack
from tests import oracle
from tests.eventually import eventually
from tests.integration.projection_service import make_topics, running, send, send_raw
from tests.integration.projection_tables import jobs, one, prepare, stage_times
from tests.journeys import Classified, Done, Submitted, facts, new_fact
from tests.kafka_log import KafkaLog


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    make_topics(farandole_settings)
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


def count(connection: Connection[Any]) -> int:
    return int(one(connection, "SELECT count(*) FROM event_log"))


def log_end(settings: Settings, topic: str) -> int:
    """Where the topic ends, transaction markers included, over all partitions."""
    reader = kafka.consumer(settings, settings.group("test"))
    try:
        parts = [TopicPartition(settings.topic(topic), part) for part in range(settings.partitions)]
        return sum(reader.get_watermark_offsets(part, timeout=10)[1] for part in parts)
    finally:
        reader.close()


def test_what_lies_in_kafka_is_folded_and_garbage_is_parked(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Cases K4 and K10."""
    chosen = facts(21, 50)
    send(farandole_settings, chosen)
    for value in (None, b"", b"\x00", b"{}", b"\xc3\x01" + b"\0" * 20):
        send_raw(farandole_settings, "jobs.done", value)
    happened = [fact.happened for fact in chosen]
    with running(farandole_settings):
        eventually(lambda: one(database, "SELECT count(*) FROM parked") == 5)
        eventually(lambda: count(database) == len(oracle.once(happened)))
    assert jobs(database) == oracle.jobs(happened)
    assert stage_times(database) == oracle.stage_times(happened)
    assert one(database, "SELECT count(*) FROM projector_offset WHERE owner IS NOT NULL") == 0


def test_a_fold_that_changed_is_built_while_the_projector_goes_on(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    chosen, later = facts(22, 50), facts(23, 20)
    happened = [fact.happened for fact in [*chosen, *later]]
    send(farandole_settings, chosen)
    with running(farandole_settings):
        eventually(lambda: count(database) == len(oracle.once(happened[: len(chosen)])))
    database.execute(
        "UPDATE projection SET hash = 'older' WHERE name = 'stage_times'; UPDATE stage_times SET events = 7"
    )
    with postgres.connect(farandole_settings) as other, ExitStack() as building:  # as if another one was being built
        building.enter_context(postgres.advisory_lock(other, "projections", farandole_settings.schema_name))
        with running(farandole_settings):
            send(farandole_settings, later)
            eventually(lambda: count(database) == len(oracle.once(happened)))
            assert one(database, "SELECT state FROM projection_build") == "wanted"
            assert stage_times(database) != oracle.stage_times(happened)
            building.close()
            eventually(lambda: one(database, "SELECT count(*) FROM projection_build") == 0)
    assert stage_times(database) == oracle.stage_times(happened)
    assert jobs(database) == oracle.jobs(happened)


def test_the_marker_of_a_transaction_leaves_no_lag(farandole_settings: Settings, database: Connection[Any]) -> None:
    """Case K7: the stored position, and its copy in Kafka, lie past the marker that follows the event."""
    send(farandole_settings, [new_fact(Done)], "test.tx")
    end = 2
    eventually(lambda: log_end(farandole_settings, "jobs.done") == end)  # the marker may come after the commit's answer
    with running(farandole_settings):
        eventually(
            lambda: one(database, "SELECT sum(next_offset) FROM projector_offset WHERE topic = 'jobs.done'") == end
        )
        lag = health.look(farandole_settings, {}, oldest=0).projector.lag
        assert lag and (lag.records, lag.partitions) == (0, {})
    reader = kafka.consumer(farandole_settings, farandole_settings.group("projector"))
    name = farandole_settings.topic("jobs.done")
    parts = [TopicPartition(name, part) for part in range(farandole_settings.partitions)]
    assert max(part.offset for part in reader.committed(parts, timeout=10)) == end
    reader.close()


def test_a_topic_made_later_is_found(farandole_settings: Settings, database: Connection[Any]) -> None:
    from farandole import topics

    with running(farandole_settings):
        send(farandole_settings, [new_fact(Submitted)])
        eventually(lambda: count(database) == 1)
        topics.ensure(farandole_settings, [topics.Wanted("jobs.new", 1)])
        send_raw(farandole_settings, "jobs.new", b"no event, but found")
        eventually(lambda: one(database, "SELECT count(*) FROM parked WHERE topic = 'jobs.new'") == 1)


def test_the_database_says_where_to_start_not_kafka(farandole_settings: Settings, database: Connection[Any]) -> None:
    """Case P1: Kafka's own offset is ahead of, or behind, what the database holds."""
    with running(farandole_settings):
        send(farandole_settings, facts(31, 5))
        expected = len(oracle.once(fact.happened for fact in facts(31, 5)))
        eventually(lambda: count(database) == expected)
    reader = kafka.consumer(farandole_settings, farandole_settings.group("projector"))
    name = farandole_settings.topic("jobs.submitted")
    reader.commit(offsets=[TopicPartition(name, 0, 1000), TopicPartition(name, 1, 0)], asynchronous=False)
    reader.close()
    epochs = one(database, "SELECT sum(epoch) FROM projector_offset")
    with running(farandole_settings):
        send(farandole_settings, facts(32, 5))
        expected += len(oracle.once(fact.happened for fact in facts(32, 5)))
        eventually(lambda: count(database) == expected)
        with running(farandole_settings):  # which takes over what it is given, at the database's offsets too
            eventually(lambda: one(database, "SELECT count(DISTINCT owner) FROM projector_offset") == 2)
            send(farandole_settings, facts(33, 5))
            expected += len(oracle.once(fact.happened for fact in facts(33, 5)))
            eventually(lambda: count(database) == expected)
    assert one(database, "SELECT sum(epoch) FROM projector_offset") > epochs
    chosen = [*facts(31, 5), *facts(32, 5), *facts(33, 5)]
    assert jobs(database) == oracle.jobs(fact.happened for fact in chosen)
    assert one(database, "SELECT count(*) FROM projector_offset WHERE gap IS NOT NULL") == 0


def test_connections_that_are_cut_cost_nothing(farandole_settings: Settings, database: Connection[Any]) -> None:
    """The database ends the projector's connections again and again, commits of unknown outcome included."""
    chosen = facts(51, 1500)
    happened = [fact.happened for fact in chosen]
    cut = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE application_name IN (SELECT left('farandole projector ' || owner, 63) FROM projector_offset)"
    )
    with running(farandole_settings.model_copy(update={"batch": 40})):
        eventually(lambda: one(database, "SELECT count(*) FROM projector_offset WHERE owner IS NOT NULL") > 0)
        send(farandole_settings, chosen)
        for share in (0.05, 0.3, 0.6):
            enough = int(share * len(oracle.once(happened)))
            eventually(partial(lambda least: count(database) > least, enough))
            one(database, cut)
        eventually(lambda: count(database) == len(oracle.once(happened)))
    assert jobs(database) == oracle.jobs(happened)
    assert one(database, "SELECT count(*) FROM parked") == 0


def test_an_offset_out_of_the_log_is_a_named_gap_and_the_other_partitions_go_on(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    database.execute("INSERT INTO projector_offset (topic, partition, next_offset) VALUES ('jobs.done', 0, 4711)")
    submitted = new_fact(Submitted)
    with running(farandole_settings):
        eventually(lambda: one(database, "SELECT count(*) FROM projector_offset WHERE gap IS NOT NULL") == 1)
        send(farandole_settings, [submitted])
        eventually(lambda: count(database) == 1)
    assert "out of" in one(database, "SELECT gap FROM projector_offset WHERE next_offset = 4711")


def test_a_topic_that_was_made_again_is_a_named_gap(farandole_settings: Settings, database: Connection[Any]) -> None:
    with running(farandole_settings):
        send(farandole_settings, [new_fact(Classified)])
        eventually(lambda: count(database) == 1)
    log = KafkaLog(farandole_settings.brokers, farandole_settings.namespace)
    next(iter(log.admin.delete_topics([log.topic("jobs.classified")]).values())).result(10)
    eventually(lambda: not log.exists("jobs.classified"))
    make_topics(farandole_settings)
    with running(farandole_settings):
        send(farandole_settings, [new_fact(Submitted), new_fact(Classified)])
        eventually(lambda: count(database) == 2)
    gaps = database.execute("SELECT DISTINCT topic FROM projector_offset WHERE gap LIKE '%made again%'").fetchall()
    assert gaps == [("jobs.classified",)]
    assert count(database) == 2


@pytest.fixture
def fragile(farandole_outages: Stack, farandole_namespace: str) -> Settings:
    """Settings for services that the test may stop."""
    settings = load_settings(**asdict(farandole_outages.endpoints), namespace=farandole_namespace)
    make_topics(settings)
    prepare(settings)
    return settings


def test_a_broker_that_is_killed_and_comes_back_costs_nothing(fragile: Settings, farandole_outages: Stack) -> None:
    """Case P7."""
    with running(fragile), postgres.connect(fragile) as connection:
        send(fragile, [new_fact(Submitted)])
        eventually(lambda: count(connection) == 1)
        farandole_outages.kafka.kill()
        farandole_outages.kafka.start()
        send(fragile, [new_fact(Submitted)])
        eventually(lambda: count(connection) == 2, seconds=60)
        assert one(connection, "SELECT count(*) FROM projector_offset WHERE gap IS NOT NULL") == 0


def test_a_database_that_stays_away_too_long_stops_the_projector_with_its_reason(
    fragile: Settings, farandole_outages: Stack
) -> None:
    with pytest.raises(Stopped, match="the database was away for more than 1 s"):
        run_while_down(fragile.model_copy(update={"outage_seconds": 1}), farandole_outages)


def run_while_down(settings: Settings, outages: Stack) -> None:
    with running(settings) as projector, postgres.connect(settings) as connection:
        eventually(lambda: one(connection, "SELECT count(*) FROM projector_offset WHERE owner IS NOT NULL") > 0)
        outages.postgres.kill()
        send(settings, [new_fact(Submitted)])
        eventually(lambda: not projector.is_alive())
