"""A role of Postgres for people who read the projection: what it may see, and what holds it back."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from urllib.parse import quote, urlsplit, urlunsplit

from farandole import postgres, reading
from farandole.errors import ExitCode, FarandoleError
from farandole.postgres import Connection, psycopg, sql
from farandole.settings import Settings

#: Columns that are closed: results of effects and replies of models may hold what is in no event, records as they lay in
#: Kafka carry headers of strangers.
CLOSED_COLUMNS = {
    "step": ("result", "trail", "failure"),
    "wait": ("key", "value", "headers"),
    "parked": ("key", "value", "headers"),
}

#: Tables that are nobody's business.
CLOSED = ("model_pace", "alembic_version")

#: What a session of the role begins with: one that reads for long, or forgets an open transaction, holds up migrations and
#: the switch to a rebuilt projection.
SESSION = {
    "default_transaction_read_only": "on",
    "statement_timeout": "60s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "60s",
}


@dataclass(frozen=True, slots=True)
class Made:
    """What came of it."""

    statements: list[str]  #: as they were run, or are to be run by an administrator
    done: bool
    created: bool
    password: str | None  #: of a role that was created; kept nowhere


def make(settings: Settings, name: str, *, only_tell: bool = False) -> Made:
    """Let the role `name` read the namespace; it is created if it is not there. Running it again changes nothing, but opens
    what has come since.

    Where the database's user may not do all of it, or with `only_tell`, nothing is done. Raises FarandoleError for a role
    that owns what it would read, and for a database without the tables.
    """
    with postgres.connect(settings, application="farandole reader") as connection:
        rows = reading.rows(connection, "reader_state", {"name": name})
        state = rows[0] if rows else {}
        if not state.get("schema") or not reading.rows(connection, "reader_columns", {"tables": ["event_log"]}):
            raise FarandoleError("there is nothing to read yet; run `farandole migrate`", ExitCode.NOT_FOUND)
        if state["owns"]:
            raise FarandoleError(
                f"the role {name!r} owns the tables or is an administrator; expected another one", ExitCode.USAGE
            )
        password = None if state["there"] else secrets.token_urlsafe(24)
        statements = _statements(connection, settings, name, state)
        told = [one.as_string(connection) for one in statements]
        if only_tell:
            return Made(told, False, False, None)
        try:
            with connection.transaction():
                for statement in statements:
                    connection.execute(statement, prepare=False)
                if password:  # as the server keeps it: what is sent may be logged there
                    kept = connection.pgconn.encrypt_password(password.encode(), name.encode()).decode()
                    connection.execute(_format("ALTER ROLE {} PASSWORD {}", name, sql.Literal(kept)))
        except (
            psycopg.errors.InsufficientPrivilege,
            psycopg.errors.InvalidGrantOperation,
            psycopg.errors.ReadOnlySqlTransaction,
        ):
            return Made(told, False, False, None)
        return Made(told, True, not state["there"], password)


def url(settings: Settings, name: str, password: str) -> str:
    """DATABASE_URL for the role."""
    parts = urlsplit(settings.database)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{quote(name, safe='')}:{password}@{place}"))


def open_to_readers(connection: Connection[Any], tables: Sequence[str]) -> None:
    """Let the roles that read this schema read `tables`, which were made in another one and have come here since: default
    rights are given where a table is made."""
    for row in reading.rows(connection, "open_to_readers", {}):
        for table in tables:
            connection.execute(sql.SQL("GRANT SELECT ON {} TO " + row["role"]).format(sql.Identifier(table)))


def _statements(
    connection: Connection[Any], settings: Settings, name: str, state: dict[str, Any]
) -> list[sql.Composed]:
    schema, database = sql.Identifier(settings.schema_name), sql.Identifier(state["database"])
    made: list[sql.Composed] = [] if state["there"] else [_format("CREATE ROLE {} LOGIN", name)]
    if not state["everybody_connects"]:
        made.append(_format("GRANT CONNECT ON DATABASE {1} TO {0}", name, database))
    path = _format("ALTER ROLE {0} IN DATABASE {1} SET search_path = {2}, public", name, database, schema)
    made += [
        _format("ALTER ROLE {0} IN DATABASE {1} SET " + key + " = {2}", name, database, sql.Literal(value))
        for key, value in SESSION.items()
    ]
    made += [
        path,
        _format("GRANT USAGE ON SCHEMA {1} TO {0}", name, schema),
        _format("GRANT SELECT ON ALL TABLES IN SCHEMA {1} TO {0}", name, schema),
        _format(
            "ALTER DEFAULT PRIVILEGES FOR ROLE {2} IN SCHEMA {1} GRANT SELECT ON TABLES TO {0}",
            name,
            schema,
            sql.Identifier(state["owner"]),
        ),
    ]
    columns = reading.rows(connection, "reader_columns", {"tables": [*CLOSED_COLUMNS, *CLOSED]})
    for table in dict.fromkeys(row["table"] for row in columns):
        made.append(_format("REVOKE SELECT ON {1} FROM {0}", name, sql.Identifier(settings.schema_name, table)))
        closed = CLOSED_COLUMNS.get(table)
        if closed:
            own = [row["column"] for row in columns if row["table"] == table and row["column"] not in closed]
            seen = sql.SQL(", ").join(map(sql.Identifier, own))
            of = sql.Identifier(settings.schema_name, table)
            made.append(_format("GRANT SELECT ({2}) ON {1} TO {0}", name, of, seen))
    return made


def _format(text: LiteralString, name: str, *rest: sql.Composable) -> sql.Composed:
    """{0} is the role."""
    text = text if "{0}" in text else text.replace("{}", "{0}", 1).replace("{}", "{1}", 1)
    return sql.SQL(text).format(sql.Identifier(name), *rest)
