"""A schema beside the real one, with an event log and tables of its own, in which folds are tried; it is gone afterwards."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from farandole import postgres
from farandole.errors import ConfigurationError
from farandole.postgres import Connection, psycopg, sql
from farandole.projections.folders import Projection
from farandole.projections.statements import SQL as STATEMENTS
from farandole.projections.statements import apply
from farandole.settings import Settings

SQL = postgres.texts(__file__)

#: Tables of the sandbox that no projection has made.
OWN = ("event_log", "farandole_sample")

#: A table's rows as texts, sorted.
Rows = list[tuple[str | None, ...]]


class Refused(Exception):
    """The fold, or what a layout asks of it, ended with an error of the database."""

    def __init__(self, sqlstate: str, text: str) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


@dataclass(slots=True)
class Sandbox:
    """The schema, two connections that work in it, and what the projection has there."""

    settings: Settings
    schema: str
    projection: Projection
    core: Projection | None  #: folded first, as a projector does; None: it is the core that is checked
    connections: list[Connection[Any]]
    columns: dict[str, dict[str, str]] = field(default_factory=dict)  #: of each table, by name, their types
    keys: dict[str, list[str]] = field(default_factory=dict)  #: of each table that has one, its key's columns
    made: list[tuple[str, str]] = field(default_factory=list)  #: what tables.sql has made: kind and name
    emptied: str = ""
    leans: bool = True  #: the projection reads the core's tables, so that these must be folded too

    @property
    def connection(self) -> Connection[Any]:
        return self.connections[0]

    def install(self) -> None:
        """Make the tables. Raises ConfigurationError naming file and line of a mistake."""
        others = list(OWN)
        if self.core:
            apply(self.connection, self.core, "tables.sql")
            others += [row[0] for row in self._look("columns", others=others)]
        before = self._made()
        apply(self.connection, self.projection, "tables.sql")
        self.made = [one for one in self._made() if one not in before]
        for table, column, kind in self._look("columns", others=others):
            self.columns.setdefault(table, {})[column] = kind
        self.keys = {table: names for table, names in self._look("keys") if table in self.columns}
        tables = [*reversed(self.columns), *others]  # those that refer to others were made later
        self.emptied = "; ".join(f'DELETE FROM "{table}"' for table in tables if table != "farandole_sample")

    def empty(self) -> None:
        self.connection.execute(postgres.script(self.emptied), prepare=False)

    def take(self, connection: Connection[Any], ids: Sequence[UUID]) -> int:
        """Insert events; how many were new. Inside a transaction."""
        return connection.execute(postgres.script(SQL["take"]), {"ids": list(ids)}).rowcount

    def offer(self, connection: Connection[Any], ids: Sequence[UUID]) -> None:
        """Make events the new ones, whatever event_log has. Inside a transaction."""
        query = "INSERT INTO new_events SELECT * FROM farandole_sample WHERE event_id = ANY (%s) ORDER BY event_id"
        connection.execute(query, (list(ids),))

    def fold(self, connection: Connection[Any]) -> None:
        """Run the projection's fold over new_events, after the core's where it leans on that one. Raises Refused."""
        with refusals():
            connection.execute(postgres.script(self.folded()), prepare=False)
            if connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
                raise Refused("25000", "fold.sql has ended the projector's transaction")

    def play(self, batches: Sequence[Sequence[UUID]], plan: Sequence[str] = ()) -> None:
        """Fold batches, each in a transaction of its own, in one round trip. Raises Refused.

        As in a projector, a batch without new events is not folded.
        """
        seen: set[UUID] = set()
        script = []
        for batch in batches:
            fold = self.folded() if set(batch) - seen else ""
            seen |= set(batch)
            script.append(f"BEGIN; {planned(plan)}; {taken(batch)}; {fold}; COMMIT")
        try:
            with refusals():
                self.connection.execute(postgres.script(";\n".join(script)), prepare=False)
        finally:
            if self.connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                self.connection.execute("ROLLBACK")

    def folded(self) -> str:
        """The folds as one text."""
        core = f"{self.core.fold}\n;" if self.core and self.leans else ""
        return f"{core}\n{self.projection.fold}\n"

    def rows(self) -> dict[str, Rows]:
        """What the projection's tables hold."""
        found: dict[str, Rows] = {}
        for table, columns in self.columns.items():
            texts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(column)) for column in columns)
            query = sql.SQL("SELECT {} FROM {}").format(texts, sql.Identifier(self.schema, table))
            found[table] = sorted(self.connection.execute(query).fetchall(), key=nulls_first)
        return found

    def _made(self) -> list[tuple[str, str]]:
        return self.connection.execute(STATEMENTS["made"], {"schema": f'"{self.schema}"'}).fetchall()

    def _look(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(
            postgres.script(SQL[query]), parameters | {"schema": f'"{self.schema}"'}
        ).fetchall()


@contextmanager
def opened(settings: Settings, projection: Projection, core: Projection | None) -> Iterator[Sandbox]:
    """A sandbox for the block. What earlier checks left that were killed is removed first."""
    schema = f"{settings.schema_name}__check_{secrets.token_hex(4)}"
    with postgres.connect(settings, application="farandole check") as keeper:
        sweep(keeper, settings)
        with postgres.advisory_lock(keeper, "check", schema):  # as long as it is held, nobody sweeps
            connections: list[Connection[Any]] = []
            try:
                _make(keeper, schema)
                connections += [_connected(settings, schema, first) for first in (True, False)]
                yield Sandbox(settings, schema, projection, core, connections)
            finally:
                for connection in connections:
                    connection.close()
                _drop(keeper, schema)


def sweep(connection: Connection[Any], settings: Settings) -> list[str]:
    """Drop the sandboxes of checks that do not run any more; their names."""
    found = connection.execute(
        "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)", (f"{settings.schema_name}__check_",)
    ).fetchall()
    swept = []
    for (schema,) in found:
        number = postgres.lock_number("check", schema)
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", (number,)).fetchone()
        if row and row[0]:
            try:
                _drop(connection, schema)
            finally:
                connection.execute("SELECT pg_advisory_unlock(%s)", (number,))
            swept.append(schema)
    return swept


def _make(connection: Connection[Any], schema: str) -> None:
    try:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"a check works in a schema of its own, {schema}: {error.diag.message_primary}; expected a role that may create one"
        ) from None


def _drop(connection: Connection[Any], schema: str) -> None:
    connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


def _connected(settings: Settings, schema: str, first: bool) -> Connection[Any]:
    connection = postgres.connect(settings, application="farandole check")
    path = sql.SQL(", ").join(map(sql.Identifier, (schema, settings.schema_name, "public")))
    connection.execute(sql.SQL("SET search_path = {}").format(path))
    if first:
        like = "CREATE TABLE {} (LIKE {} INCLUDING INDEXES INCLUDING CONSTRAINTS INCLUDING DEFAULTS)"
        for table in OWN:
            names = sql.Identifier(schema, table), sql.Identifier(settings.schema_name, "event_log")
            connection.execute(sql.SQL(like).format(*names))
    connection.execute(postgres.script(SQL["session"]), prepare=False)
    return connection


@contextmanager
def refusals() -> Iterator[None]:
    """What the database refuses is Refused; an outage stays what it is."""
    try:
        yield
    except psycopg.Error as error:
        if postgres.is_away(error):
            raise
        raise Refused(error.sqlstate or "", str(error.diag.message_primary or error)) from error


def taken(ids: Sequence[UUID]) -> str:
    """The statement that inserts events, with their ids in its text."""
    return SQL["take"].replace("%(ids)s", f"'{{{','.join(map(str, ids))}}}'")


def planned(plan: Sequence[str]) -> str:
    """Statements that turn settings of the planner off for a transaction."""
    return "; ".join(f"SET LOCAL {setting} = off" for setting in plan)


def nulls_first(row: tuple[str | None, ...]) -> tuple[tuple[bool, str], ...]:
    """What rows are sorted by."""
    return tuple((value is not None, value or "") for value in row)
