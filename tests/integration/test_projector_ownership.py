"""Who may write a partition: claims and epochs in the database, whatever the group and the older owners believe."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

from farandole import postgres, topics
from farandole.postgres import Connection, psycopg
from farandole.projector.store import Folded
from farandole.settings import Settings
from tests import oracle
from tests.commands import Command, running
from tests.eventually import eventually
from tests.integration.projection_service import make_topics, send, send_raw
from tests.integration.projection_service import running as projector
from tests.integration.projection_tables import Folder, jobs, one, prepare, stage_times
from tests.journeys import Log, Submitted, facts, new_fact, written
from tests.kafka_log import KafkaLog

PLACE = ("jobs.submitted", 0)


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


@contextmanager
def standing_still(settings: Settings) -> Iterator[None]:
    """Batches get no farther than to the core fold: their transactions stay open."""
    with postgres.connect(settings, autocommit=False) as holder:
        holder.execute("LOCK TABLE job IN ACCESS EXCLUSIVE MODE")
        yield
        holder.rollback()


def waiting(connection: Connection[Any], schema: str) -> int:
    """How many sessions of projectors wait for a lock on a table of this namespace, or for one another's rows."""
    query = (
        "SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE wait_event_type = 'Lock'"
        f" AND application_name LIKE 'farandole projector %' AND relation = ANY (ARRAY['{schema}.job'::regclass,"
        f" '{schema}.projector_offset'::regclass])"
    )
    return int(one(connection, query))


class Duel:
    """A projector whose transaction is open in the middle of a batch, and another one that claims the partition."""

    def __init__(self, settings: Settings, pool: ThreadPoolExecutor) -> None:
        self.settings, self.pool, self.log = settings, pool, Log(settings)
        self.records = [written(self.log, [new_fact(Submitted)]) for _ in range(3)]
        self.old = Folder(settings, "old", [PLACE])
        self.old.fold(self.records[0])
        self.holder = postgres.connect(settings, autocommit=False)
        self.holder.execute("LOCK TABLE job IN ACCESS EXCLUSIVE MODE")
        self.folding: Future[Folded] = pool.submit(self.old.fold, self.records[1])
        self.blocked(1)
        self.heir: Future[Folder] = pool.submit(Folder, settings, "heir", [PLACE])
        self.blocked(2)

    def blocked(self, number: int) -> None:
        with postgres.connect(self.settings) as looker:
            schema = self.settings.schema_name
            eventually(lambda: waiting(looker, schema) == number, f"{number} wait for a lock")


def test_a_claim_waits_for_the_open_batch_of_the_old_owner_who_is_refused_from_then_on(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case K6, for projectors: the batch that was under way counts, the next one does not."""
    with ThreadPoolExecutor(2) as pool:
        duel = Duel(farandole_settings, pool)
        assert not duel.heir.done()
        duel.holder.close()
        assert duel.folding.result(30).new == 1
        heir = duel.heir.result(30)
    assert one(database, "SELECT next_offset FROM projector_offset") == 2
    assert duel.old.fold(duel.records[2]) == Folded(new=0, duplicates=0, parked=0, refused=frozenset({PLACE}))
    assert heir.fold([record for part in duel.records for record in part]).new == 1
    assert one(database, "SELECT sum(events)::int FROM job") == one(database, "SELECT count(*) FROM event_log") == 3
    assert one(database, "SELECT owner FROM projector_offset") == "heir"


def test_an_old_owner_that_is_cut_off_in_the_middle_of_a_batch_leaves_nothing_of_it(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        duel = Duel(farandole_settings, pool)
        one(
            database,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%projector old'",
        )
        duel.holder.close()
        with pytest.raises(psycopg.OperationalError):
            duel.folding.result(30)
        heir = duel.heir.result(30)
    assert one(database, "SELECT next_offset FROM projector_offset") == 1
    assert heir.fold([record for part in duel.records for record in part]).new == 2
    assert one(database, "SELECT sum(events)::int FROM job") == one(database, "SELECT count(*) FROM event_log") == 3


def test_a_projector_frozen_in_the_middle_of_a_batch_doubles_nothing_when_it_wakes(
    farandole_settings: Settings, database: Connection[Any], tmp_path: Path
) -> None:
    """Case K6, with real processes: frozen for longer than its session lasts, and woken when another has its partitions."""
    make_topics(farandole_settings)
    chosen, more = facts(71, 80), facts(72, 20)
    happened = [fact.happened for fact in chosen]
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(
                running(
                    farandole_settings,
                    tmp_path / f"{name}.log",
                    "projector",
                    more={"FARANDOLE_SESSION_TIMEOUT_MS": "6000"},
                )
            )
            for name in ("first", "second")
        )
        eventually(lambda: one(database, "SELECT count(DISTINCT owner) FROM projector_offset") == 2)
        with standing_still(farandole_settings):
            send(farandole_settings, chosen)
            eventually(lambda: waiting(database, farandole_settings.schema_name) == 2)
            first.signal(signal.SIGSTOP)
        cut_off(database, first)  # as the server does by itself after 15 s, session.sql
        eventually(lambda: one(database, "SELECT count(*) FROM event_log") == len(oracle.once(happened)))
        first.signal(signal.SIGCONT)
        send(farandole_settings, more)
        happened += [fact.happened for fact in more]
        eventually(lambda: one(database, "SELECT count(*) FROM event_log") == len(oracle.once(happened)))
        eventually(
            lambda: one(database, "SELECT count(DISTINCT owner) FROM projector_offset") == 2, "the first is back"
        )
        assert (first.stop(), second.stop()) == (0, 0)
    assert jobs(database) == oracle.jobs(happened) and stage_times(database) == oracle.stage_times(happened)
    assert one(database, "SELECT count(*) FROM parked") == one(database, "SELECT count(*) FROM conflict") == 0


def cut_off(connection: Connection[Any], command: Command) -> None:
    pattern = f"farandole projector %:{command.process.pid}:%"
    ended = connection.execute(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE %s", (pattern,)
    ).fetchone()
    assert ended == (1,)


def test_partitions_that_are_added_to_a_topic_are_folded_by_a_projector_that_runs(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    topics.ensure(farandole_settings, [topics.Wanted("jobs.done", 1)])
    log = KafkaLog(farandole_settings.brokers, farandole_settings.namespace)
    with projector(farandole_settings):
        send_raw(farandole_settings, "jobs.done", b"first")
        eventually(lambda: one(database, "SELECT count(*) FROM parked") == 1)
        name = log.topic("jobs.done")
        next(iter(log.admin.create_partitions([NewPartitions(name, 3)]).values())).result(10)
        eventually(lambda: len(log.admin.list_topics(name, timeout=10).topics[name].partitions) == 3)
        log.write("jobs.done", [(None, b"second")], partition=2)
        eventually(lambda: one(database, "SELECT count(*) FROM parked WHERE partition = 2") == 1)
