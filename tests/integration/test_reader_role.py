"""A role that reads: what it sees, what is closed to it, and that it changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from farandole import Client, paging, postgres, reader_role, reading
from farandole.cli import app
from farandole.errors import ExitCode, FarandoleError
from farandole.postgres import Connection, psycopg, sql
from farandole.settings import Settings
from tests.integration.projection_tables import Folder, one, places, prepare
from tests.journeys import Blocked, Log, Submitted, new_fact, written


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    first = new_fact(Submitted)
    records = written(Log(farandole_settings), [first, new_fact(Blocked, cause=first)])
    Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    with postgres.connect(farandole_settings) as connection:
        yield connection


@pytest.fixture
def name(farandole_settings: Settings, database: Connection[Any]) -> Iterator[str]:
    """Of a role that is gone afterwards; roles are of the whole server."""
    name = f"{farandole_settings.schema_name} reader"
    yield name
    for statement in ("DROP OWNED BY {}", "DROP ROLE {}"):
        if one(database, f"SELECT count(*) FROM pg_roles WHERE rolname = '{name}'"):
            database.execute(sql.SQL(statement).format(sql.Identifier(name)))


def as_reader(settings: Settings, name: str) -> Settings:
    made = reader_role.make(settings, name)
    assert made.done
    assert made.password
    return settings.model_copy(update={"database_url": SecretStr(reader_role.url(settings, name, made.password))})


def refusal(connection: Connection[Any], statement: str) -> type[Exception]:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(postgres.script(statement))
    return refused.type


async def test_a_reader_sees_jobs_journeys_and_what_is_stuck_and_waits(
    farandole_settings: Settings, database: Connection[Any], name: str
) -> None:
    settings = as_reader(farandole_settings, name)
    with postgres.connect(settings) as connection:
        (job,) = paging.page(connection, paging.Filters(search="hello")).jobs
        whole = reading.job(connection, job.trace_id)
        assert whole and whole.data == {"submitted": {"text": "hello"}}
        assert len(reading.journey(connection, job.trace_id)) == 2
        assert reading.waits(connection, job.trace_id) == []
        assert one(connection, "SELECT status FROM stuck_jobs") == "blocked"
        assert one(connection, "SELECT count(*) FROM event_log") == 2
    async with Client(settings) as client:
        assert (await client.wait(UUID(str(job.trace_id)))).status == "blocked"


def test_a_reader_changes_nothing_and_holds_nobody_up(
    farandole_settings: Settings, database: Connection[Any], name: str
) -> None:
    with postgres.connect(as_reader(farandole_settings, name)) as connection:
        for setting, value in {"statement_timeout": "1min", "lock_timeout": "5s"}.items():
            assert one(connection, f"SHOW {setting}") == value
        assert refusal(connection, "UPDATE job SET run = 1") is psycopg.errors.ReadOnlySqlTransaction
        connection.execute("SET default_transaction_read_only = off")
        for statement in ("UPDATE job SET run = 1", "DELETE FROM event_log", "CREATE TABLE mine (x int)"):
            assert refusal(connection, statement) is psycopg.errors.InsufficientPrivilege
    assert one(database, "SELECT run FROM job") == 0


def test_results_of_steps_and_raw_records_are_closed_and_the_rest_of_their_rows_is_open(
    farandole_settings: Settings, database: Connection[Any], name: str
) -> None:
    closed = [f"{table}.{column}" for table, columns in reader_role.CLOSED_COLUMNS.items() for column in columns]
    with postgres.connect(as_reader(farandole_settings, name)) as connection:
        for column in closed:
            assert refusal(connection, f"SELECT {column} FROM {column.partition('.')[0]}") is (
                psycopg.errors.InsufficientPrivilege
            )
        for table in reader_role.CLOSED:
            assert refusal(connection, f"SELECT FROM {table}") is psycopg.errors.InsufficientPrivilege
        assert one(connection, "SELECT count(agent) FROM step") == 0
        assert one(connection, "SELECT count(error) FROM wait") == 0
        assert one(connection, "SELECT count(cause) FROM parked") == 0


def test_tables_made_later_are_open_here_and_those_that_moved_in_once_they_are_opened(
    farandole_settings: Settings, database: Connection[Any], name: str
) -> None:
    settings = as_reader(farandole_settings, name)
    build = sql.Identifier(f"{farandole_settings.schema_name}__test")
    here = sql.Identifier(farandole_settings.schema_name)
    database.execute("CREATE TABLE later (x int)")
    database.execute(sql.SQL("CREATE SCHEMA {0}; CREATE TABLE {0}.moved (x int)").format(build))
    database.execute(sql.SQL("ALTER TABLE {0}.moved SET SCHEMA {1}; DROP SCHEMA {0}").format(build, here))
    with postgres.connect(settings) as connection:
        assert one(connection, "SELECT count(*) FROM later") == 0
        assert refusal(connection, "SELECT FROM moved") is psycopg.errors.InsufficientPrivilege
        reader_role.open_to_readers(database, ["moved"])
        assert one(connection, "SELECT count(*) FROM moved") == 0


def test_a_role_that_is_there_keeps_its_password_and_an_owner_is_no_reader(
    farandole_settings: Settings, database: Connection[Any], name: str
) -> None:
    settings = as_reader(farandole_settings, name)
    again = reader_role.make(farandole_settings, name)
    assert (again.done, again.created, again.password) == (True, False, None)
    with postgres.connect(settings) as connection:
        assert one(connection, "SELECT count(*) FROM job") == 1
    with pytest.raises(FarandoleError, match="owns the tables or is an administrator"):
        reader_role.make(farandole_settings, one(database, "SELECT current_user"))


def test_where_it_may_not_be_made_the_command_prints_sql_that_an_administrator_can_run(
    farandole_settings: Settings, database: Connection[Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = as_reader(farandole_settings, name)
    monkeypatch.setenv("DATABASE_URL", reader.database)
    monkeypatch.setenv("FARANDOLE_NAMESPACE", reader.namespace)
    other = f"{name} too"
    ended = CliRunner().invoke(app, ["projector", "reader", other])
    assert ended.exit_code == ExitCode.FAILED
    assert "have an administrator run the SQL above" in ended.stderr
    assert ended.stdout.startswith(f'CREATE ROLE "{other}" LOGIN;')
    try:
        database.execute(postgres.script(ended.stdout.replace(f'FOR ROLE "{name}" ', "")))
        assert one(database, f"SELECT has_table_privilege('{other}', 'job_state', 'SELECT')")
        assert not one(database, f"SELECT has_table_privilege('{other}', 'step', 'SELECT')")
    finally:
        for statement in ("DROP OWNED BY {}", "DROP ROLE {}"):
            database.execute(sql.SQL(statement).format(sql.Identifier(other)))


def test_no_password_is_sent_as_it_is(farandole_settings: Settings, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may log statements, and shows them to others."""
    sent: list[str] = []
    execute = Connection.execute

    def watched(connection: Connection[Any], query: Any, *given: Any, **more: Any) -> Any:
        sent.append(query.as_string(connection) if isinstance(query, sql.Composable) else str(query))
        return execute(connection, query, *given, **more)

    monkeypatch.setattr(Connection, "execute", watched)
    made = reader_role.make(farandole_settings, name)
    assert made.password
    assert any("PASSWORD 'SCRAM-SHA-256$" in statement for statement in sent)
    assert not any(made.password in statement for statement in sent)
