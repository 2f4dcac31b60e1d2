"""Parked records are listed, tried again and given up; each is in the log or parked, whatever is killed when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from farandole import kafka, parked, postgres
from farandole.envelope import Coordinates, trace_of
from farandole.errors import Unreachable
from farandole.kafka import Record
from farandole.migrations import FOLDER
from farandole.parked import Chosen
from farandole.postgres import Connection, psycopg
from farandole.projector.parking import Retried, Retry
from farandole.settings import Settings
from tests import oracle
from tests.integration.parking import Late, park, prepared, publish
from tests.integration.projection_tables import Folder, jobs, one, places, refuse, stage_times
from tests.journeys import Done, Fact, Log, Submitted, new_fact, written

ALL = Chosen()


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepared(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


def retry(settings: Settings, chosen: Chosen = ALL) -> Retried:
    done = Retried()
    with postgres.connect(settings) as connection, closing(Retry(settings)) as again:
        for batch in again.run(connection, chosen):
            done.add(batch)
    return done


def late(count: int) -> list[Fact]:
    return [new_fact(Late) for _ in range(count)]


def raw(connection: Connection[Any]) -> list[Any]:
    """Everything that is parked, and how many events there are."""
    rows = connection.execute('SELECT * FROM parked ORDER BY topic, partition, "offset"').fetchall()
    return [*rows, connection.execute("SELECT count(*) FROM event_log").fetchone()]


def test_what_was_parked_for_want_of_a_schema_is_folded_as_if_it_had_never_been(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """With its place, its timestamp, its key and its headers; and what was not to be read yet stays as it is."""
    first = new_fact(Submitted)
    fact = new_fact(Late, cause=first)
    log = Log(farandole_settings)
    header = ("odd", b"\xff"), ("odd", None)
    told = log.append(Late, fact.fields)
    records = [*written(log, [first]), replace(told, headers=[*header])]
    park(farandole_settings, records)
    [before] = parked.rows(database, Chosen())
    assert before.record(farandole_settings) == records[1]
    assert (before.cause, str(before.trace_id)) == ("unknown_schema", first.fields["trace_id"])

    assert retry(farandole_settings).left == Counter(unknown_schema=1)
    [again] = parked.rows(database, Chosen())
    assert again.retried_at and again.record(farandole_settings) == records[1]

    publish(farandole_settings)
    assert retry(farandole_settings) == Retried(1, new=1)
    happened = [first.happened, fact.happened]
    assert jobs(database) == oracle.jobs(happened) and stage_times(database) == oracle.stage_times(happened)
    row = database.execute("SELECT value, logged_at, topic, partition, \"offset\" FROM event_log WHERE stage = 'late'")
    assert row.fetchone() == (told.value, one(database, "SELECT max(logged_at) FROM event_log"), "jobs.done", 0, 0)
    assert parked.rows(database, Chosen()) == []
    assert retry(farandole_settings) == Retried()


def test_an_event_that_is_in_the_log_is_parked_no_longer_and_counted_once(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Its other payload is a conflict, as it is when a projector meets it; a build that is under way is told what is new."""
    known, fact, log = new_fact(Done), new_fact(Late), Log(farandole_settings)
    odd = fact.fields | {"event_id": known.fields["event_id"]}
    records = [*written(log, [known, fact, fact]), log.append(Late, odd, text="another")]
    park(farandole_settings, records)
    publish(farandole_settings)
    database.execute("INSERT INTO projection_build VALUES ('built', '', '', '', '', 'building')")
    assert retry(farandole_settings) == Retried(3, new=1, known=2)
    assert str(one(database, "SELECT event_id FROM projection_backlog")) == fact.fields["event_id"]
    assert one(database, "SELECT count(*) FROM event_log") == 2
    assert one(database, 'SELECT "offset" FROM conflict') == records[-1].offset
    assert jobs(database) == oracle.jobs([known.happened, fact.happened])


def test_two_retries_at_once_fold_each_record_once_beside_a_projector_that_folds_the_same_jobs(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """In many small batches, with projections that all of them write."""
    chosen, settings = late(40), farandole_settings.model_copy(update={"batch": 3})
    park(settings, written(Log(settings), [*chosen, *chosen[:10]]))
    publish(settings)
    others = [new_fact(Done, fact.fields["trace_id"]) for fact in reversed(chosen)]
    records = written(Log(settings), others, partition=1)
    projector = Folder(settings, "beside", places(records, settings))
    with ThreadPoolExecutor(3) as pool:
        folding = [pool.submit(lambda: [projector.fold(records[at : at + 3]) for at in range(0, 40, 3)])]
        done = list(pool.map(lambda _: retry(settings), range(2)))
        folding[0].result()
    assert (sum(one.tried for one in done), sum(one.new for one in done), sum(one.known for one in done)) == (
        50,
        40,
        10,
    )
    assert jobs(database) == oracle.jobs(fact.happened for fact in (*chosen, *others))
    assert one(database, "SELECT count(*) FROM parked") == 0


def test_a_retry_that_is_killed_at_any_statement_leaves_every_record_parked(
    farandole_settings: Settings, database: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after kill -9: the connection is gone without a word, before the n-th statement of the transaction."""
    chosen, log = late(4), Log(farandole_settings)
    park(farandole_settings, [*written(log, chosen), log.put("jobs.done", 0, b"junk")])
    publish(farandole_settings)
    before, left = raw(database), [0]
    again = Retry(farandole_settings)
    mine = again._store._connection.info.backend_pid
    execute, copy = psycopg.Cursor.execute, psycopg.Cursor.copy

    def dying(real: Any) -> Any:
        def called(cursor: Any, *given: Any, **more: Any) -> Any:
            if cursor.connection.info.backend_pid == mine:
                left[0] -= 1
                if left[0] == 0:
                    cursor.connection.pgconn.finish()
            return real(cursor, *given, **more)

        return called

    monkeypatch.setattr(psycopg.Cursor, "execute", dying(execute))
    monkeypatch.setattr(psycopg.Cursor, "copy", dying(copy))
    for number in range(1, 100):
        left[0] = number
        try:
            [done] = again.run(database, ALL)
        except psycopg.OperationalError:
            assert raw(database) == before
            again._store = again._connected()
            mine = again._store._connection.info.backend_pid
        else:
            break
    again.close()
    assert number > 8 and done == Retried(5, new=4, left=Counter(undecodable=1))
    assert jobs(database) == oracle.jobs(fact.happened for fact in chosen)
    assert one(database, "SELECT count(*) FROM parked") == 1


def test_an_outage_changes_nothing(
    farandole_settings: Settings, database: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither Kafka's, while a schema is looked up, nor the database's: what it stops with is no reason of the record's."""
    park(farandole_settings, written(Log(farandole_settings), late(3)))
    before = raw(database)
    monkeypatch.setattr(kafka, "ANSWER", 0.5)
    with pytest.raises(Unreachable):
        retry(farandole_settings.model_copy(update={"kafka_bootstrap_servers": "127.0.0.1:1"}))
    assert raw(database) == before
    monkeypatch.undo()
    publish(farandole_settings)
    refuse(database, "57014")
    with pytest.raises(psycopg.errors.QueryCanceled):
        retry(farandole_settings)
    assert raw(database) == before


def test_what_the_database_refuses_stays_parked_alone_with_the_error_of_today(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    chosen, bad = late(9), new_fact(Late, hop=4711)
    park(farandole_settings, written(Log(farandole_settings), [*chosen[:4], bad, *chosen[4:]]))
    publish(farandole_settings)
    refuse(database, "22003", 4711)
    assert retry(farandole_settings) == Retried(10, new=9, left=Counter(refused=1))
    [left] = parked.rows(database, Chosen())
    assert (left.cause, left.error, left.offset) == ("refused", "no such hop", 4)
    assert jobs(database) == oracle.jobs(fact.happened for fact in chosen)
    database.execute("DROP TRIGGER refuse ON job")
    assert retry(farandole_settings, Chosen(cause="refused")) == Retried(1, new=1)


def test_a_topic_that_was_made_again_parks_its_own_records_beside_the_old_ones(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    log = Log(farandole_settings)
    old = log.put("jobs.done", 0, b"old")
    new = Record(old.topic, old.partition, old.offset, old.timestamp_ms + 1, None, b"new", [])
    park(farandole_settings, [old])
    database.execute("UPDATE projector_offset SET next_offset = 0")
    park(farandole_settings, [new])
    assert [one.value for one in parked.rows(database, Chosen())] == [b"old", b"new"]
    assert retry(farandole_settings).left == Counter(undecodable=2)


def test_records_that_were_parked_by_the_version_before_get_a_timestamp(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Without a key the job's id tells it, and the job is the same again; with one the time of parking has to do."""
    database.execute(
        "ALTER TABLE parked DROP timestamp_ms, DROP retried_at, DROP discarded_at CASCADE, DROP reason;"
        ' ALTER TABLE parked ADD PRIMARY KEY (topic, partition, "offset")'
    )
    at, moment = Coordinates("jobs.done", 0, 7, 1_782_863_940_123), "2026-06-30 12:00:00.5+00"
    for key, offset in ((None, 7), (b"", 8), (b"k", 9)):
        trace = trace_of(replace(at, offset=offset), key, "jobs")
        database.execute(
            "INSERT INTO parked VALUES ('jobs.done', 0, %s, %s, '', '[]', %s, 'empty', '', %s)",
            (offset, key, trace, moment),
        )
    database.execute(postgres.script((FOLDER / "sql" / "0006_parking.sql").read_text()))
    found = {one.offset: one.timestamp_ms for one in parked.rows(database, ALL)}
    assert found == {7: at.timestamp_ms, 8: at.timestamp_ms, 9: 1_782_820_800_500}
