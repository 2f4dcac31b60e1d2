"""Parked records are listed, tried again and given up; each is in the log or parked, whatever is killed when."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from farandole import Event, kafka, parked, postgres, reading, topics
from farandole.cli import app
from farandole.contracts import codec, schema_log
from farandole.contracts.schema_log import SCHEMA_TOPIC
from farandole.errors import ExitCode, Unreachable
from farandole.kafka import Record
from farandole.parked import Chosen
from farandole.postgres import Connection, psycopg
from farandole.project import find_project
from farandole.projector.parking import Retried, Retry
from farandole.settings import Settings
from farandole.testing.flow import environment
from tests import oracle
from tests.integration.projection_tables import Folder, jobs, one, places, prepare, refuse, stage_times
from tests.journeys import Done, Fact, Log, Submitted, new_fact, written

ALL = Chosen()


class Late(Event, topic="jobs.done", stage="late"):
    """An event whose schema is published after its first records."""

    text: str


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    topics.ensure(
        farandole_settings, [one for one in topics.of_events(farandole_settings, ()) if one.name == SCHEMA_TOPIC]
    )
    with postgres.connect(farandole_settings) as connection:
        yield connection


def park(settings: Settings, records: Sequence[Record]) -> None:
    """Fold the records as a projector would: those that it cannot read are parked."""
    folder = Folder(settings, "a", places(records, settings))
    with closing(folder.store):
        folder.fold(records)


def publish(settings: Settings) -> None:
    schema_log.publish(settings, [codec.contract(Late, settings.flow)])


def retry(settings: Settings, chosen: Chosen = ALL) -> Retried:
    done = Retried()
    with postgres.connect(settings) as connection, closing(Retry(settings, find_project())) as again:
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
    """The ids of a stranger's record are made of its place and its timestamp: they are those that an agent has seen."""
    first = new_fact(Submitted)
    fact = new_fact(Late, cause=first)
    log = Log(farandole_settings)
    header = ("odd", b"\xff"), ("odd", None)
    told = log.append(Late, fact.fields)
    records = [*written(log, [first]), Record(*(getattr(told, name) for name in told.__slots__[:-1]), [*header])]
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
    """Its other payload is a conflict, as it is when a projector meets it."""
    known, fact, log = new_fact(Done), new_fact(Late), Log(farandole_settings)
    odd = fact.fields | {"event_id": known.fields["event_id"]}
    records = [*written(log, [known, fact, fact]), log.append(Late, odd, text="another")]
    park(farandole_settings, records)
    publish(farandole_settings)
    assert retry(farandole_settings) == Retried(3, new=1, known=2)
    assert one(database, "SELECT count(*) FROM event_log") == 2
    assert one(database, 'SELECT "offset" FROM conflict') == records[-1].offset
    assert jobs(database) == oracle.jobs([known.happened, fact.happened])


def test_two_retries_at_once_fold_each_record_once(farandole_settings: Settings, database: Connection[Any]) -> None:
    """In many small batches, with projections that both of them write."""
    chosen, settings = late(40), farandole_settings.model_copy(update={"batch": 3})
    park(settings, written(Log(settings), [*chosen, *chosen[:10]]))
    publish(settings)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: retry(settings), range(2)))
    assert (sum(one.tried for one in done), sum(one.new for one in done), sum(one.known for one in done)) == (
        50,
        40,
        10,
    )
    assert jobs(database) == oracle.jobs(fact.happened for fact in chosen)
    assert one(database, "SELECT count(*) FROM parked") == 0


def test_a_retry_that_is_killed_at_any_statement_leaves_every_record_parked(
    farandole_settings: Settings, database: Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after kill -9: the connection is gone without a word, before the n-th statement of the transaction."""
    chosen, log = late(4), Log(farandole_settings)
    park(farandole_settings, [*written(log, chosen), log.put("jobs.done", 0, b"junk")])
    publish(farandole_settings)
    before, left = raw(database), [0]
    again = Retry(farandole_settings, find_project())
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


# The commands


@pytest.fixture
def command(farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Any:
    for variable, value in environment(farandole_settings).items():
        monkeypatch.setenv(variable, value)

    def farandole(*arguments: str | Path, code: int = 0) -> str:
        ended = CliRunner().invoke(app, [*map(str, arguments)])
        assert ended.exit_code == code, ended.output
        return " ".join(ended.output.split()) if "--json" not in arguments else ended.stdout

    return farandole


def test_a_person_lists_shows_retries_and_discards(
    farandole_settings: Settings, database: Connection[Any], command: Any, tmp_path: Path
) -> None:
    fact, log = new_fact(Submitted), Log(farandole_settings)
    trace = fact.fields["trace_id"]
    records = [
        *written(log, [fact, new_fact(Late, cause=fact)]),
        log.put("jobs.done", 3, b"\xff\0\x1b[31m", trace.encode()),
    ]
    park(farandole_settings, records)

    listed = json.loads(command("parked", "list", "--json"))
    assert [(one["cause"], one["records"]) for one in listed["counts"]] == [("undecodable", 1), ("unknown_schema", 1)]
    assert [(one["partition"], one["offset"]) for one in listed["records"]] == [(0, 0), (3, 0)]
    assert "jobs.done/3@0 undecodable" in command("parked", "list", "--job", trace)
    assert "jobs.done/3@0: undecodable (the value starts with ff 00" in command("job", trace)
    assert "parked jobs.done/0@0: unknown_schema" in command("journey", trace)

    assert "ff 00 1b 5b 33 31 6d ...[31m" in command("parked", "show", "jobs.done/3@0", "--raw", tmp_path / "raw")
    assert (tmp_path / "raw").read_bytes() == b"\xff\0\x1b[31m"
    [shown] = json.loads(command("parked", "show", "jobs.done", "0", "0", "--json"))
    assert "farandole schemas publish" in shown["what_to_do"] and shown["key"] == trace
    assert "parked still: 1 unknown_schema" in command(
        "parked", "retry", "--topic", "jobs.done", "--cause", "unknown_schema", code=ExitCode.FAILED
    )
    publish(farandole_settings)
    assert "farandole parked retry jobs.done/0@0" in command("parked", "show", "jobs.done/0@0")
    assert "1 can be read, and would be folded" in command("parked", "retry", "--all", "--dry-run")
    told = {"folded": 1, "tried": 2, "already_in_the_log": 0, "left": {"undecodable": 1}}
    assert json.loads(command("parked", "retry", "--all", "--json", code=ExitCode.FAILED)) == told

    assert reading.troubles(database)["parked"] == 1
    found = reading.job(database, trace)
    assert found and found.parked == 1
    assert command("parked", "discard", "jobs.done/3@0", "--reason", "noise", "--yes") == "1 discarded"
    assert reading.troubles(database)["parked"] == 0
    found = reading.job(database, trace)
    assert found and found.parked == 0
    assert command("parked", "list") == "no parked records"
    assert "discarded" in command("parked", "list", "--discarded") and "noise" in command(
        "parked", "list", "--discarded"
    )
    assert "was discarded (noise)" in command("parked", "retry", "jobs.done/3@0", code=ExitCode.NOT_FOUND)
    command("parked", "retry", "jobs.done/3@0", "--discarded", code=ExitCode.FAILED)
    assert one(database, "SELECT value FROM parked WHERE discarded_at IS NOT NULL") == b"\xff\0\x1b[31m"


def test_a_job_of_parked_records_alone_is_found_by_them(
    farandole_settings: Settings, database: Connection[Any], command: Any
) -> None:
    fact = new_fact(Late)
    park(farandole_settings, written(Log(farandole_settings), [fact]))
    said = command("job", fact.fields["trace_id"], code=ExitCode.NOT_FOUND)
    assert "of its records jobs.done/0@0 is parked" in said


def test_nobody_takes_up_or_gives_up_everything_by_leaving_an_option_out(
    farandole_settings: Settings, database: Connection[Any], command: Any
) -> None:
    park(farandole_settings, [Log(farandole_settings).put("jobs.done", 0, b"junk")])
    assert "which records?" in command("parked", "retry", code=ExitCode.USAGE)
    assert "which records?" in command("parked", "discard", "--reason", "x", "--yes", code=ExitCode.USAGE)
    assert "--all leaves nothing to choose" in command(
        "parked", "retry", "--all", "--cause", "empty", code=ExitCode.USAGE
    )
    assert "expected TOPIC/PARTITION@OFFSET" in command("parked", "show", "jobs.done", "0", code=ExitCode.USAGE)
    assert "nobody is here to be asked" in command("parked", "discard", "--all", "--reason", "x", code=ExitCode.USAGE)
    assert "jobs.done/0@9 is not parked" in command("parked", "retry", "jobs.done/0@9", code=ExitCode.NOT_FOUND)
    command("parked", "show", "jobs.done/0@9", code=ExitCode.NOT_FOUND)
    assert one(database, "SELECT count(*) FROM parked WHERE discarded_at IS NULL") == 1
    assert command("parked", "retry", "--cause", "empty") == "no parked records"
