"""The schema in which a projection is built: its tables there, and `new_events` as the piece that is folded."""

from __future__ import annotations

from typing import Any

from farandole import postgres
from farandole.errors import ConfigurationError
from farandole.postgres import Connection, psycopg, sql
from farandole.projections.folders import Projection
from farandole.projections.statements import SQL, apply
from farandole.settings import Settings

#: Milliseconds. How long projectors' batches under way are waited for.
PATIENCE = 5_000

#: Milliseconds for which projectors, and readers behind them, wait at most for somebody who reads what is replaced or dropped.
HELD = 500

#: Temporary tables and views of projectors and builders: they would hide a table of that name.
RESERVED = {"new_events", "incoming", "fresh", "piece"}


class Beside:
    """One a namespace; all but `clear` belongs to the caller's transaction."""

    def __init__(self, settings: Settings, connection: Connection[Any]) -> None:
        self._connection = connection
        self._schema = settings.schema_name
        self._name = f"{settings.schema_name}__build"

    def make(self) -> None:
        """The schema, empty."""
        self.clear()
        try:
            self._connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self._name)))
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConfigurationError(
                f"projections are built in a schema of their own, {self._name}, and the database's user may not create it:"
                " GRANT CREATE ON DATABASE ... TO it"
            ) from error

    def make_tables(self, projection: Projection) -> None:
        apply(self._connection, projection, "tables.sql")
        rows = self._connection.execute(SQL["made"], {"schema": self._name}).fetchall()
        made, others = [name for kind, name in rows if kind == "table"], [f"{k} {n}" for k, n in rows if k != "table"]
        if others or sorted(made) != sorted(projection.table_names):
            raise ConfigurationError(
                f"{projection.where}/tables.sql: expected only tables without a schema (CREATE TABLE IF NOT EXISTS name,"
                f" in lower case) and their indexes; it makes {', '.join([*others, *made])}"
            )
        for table, other in self._connection.execute(SQL["referred"], {"schema": self._name}).fetchall():
            raise ConfigurationError(
                f"{projection.where}/tables.sql: {table} has a foreign key to {other}, which is made anew and forgotten at"
                " other times; expected foreign keys among its own tables only"
            )
        names = sorted(set(projection.table_names) - self._live_tables(projection))
        rows = self._connection.execute(SQL["taken"], {"schema": self._schema, "tables": names}).fetchall()
        for table in [name for (name,) in rows] + sorted(RESERVED.intersection(projection.table_names)):
            raise ConfigurationError(
                f"{projection.where}/tables.sql: the table {table} is there and is not this projection's"
            )

    def _live_tables(self, projection: Projection) -> set[str]:
        """Those of the live version. Of what an older farandole has folded they are not known: then its own names are."""
        rows = self._connection.execute("SELECT tables FROM projection WHERE name = %s", (projection.name,)).fetchall()
        texts = [projection.tables if tables is None else tables for (tables,) in rows]
        return {table for text in texts for table in Projection(projection.name, None, text, "").table_names}

    def try_fold(self, projection: Projection) -> None:
        """Fold nothing: mistakes show before the work is done, and SQL that ends the transaction does no harm later."""
        self.over("SELECT * FROM event_log WHERE false")
        self._connection.execute("SAVEPOINT fold_is_tried")
        apply(self._connection, projection, "fold.sql")
        try:
            self._connection.execute("RELEASE SAVEPOINT fold_is_tried")
        except psycopg.Error as error:
            raise ConfigurationError(
                f"{projection.where}/fold.sql: it ends the transaction it runs in; leave BEGIN, COMMIT and ROLLBACK out"
            ) from error
        for (table,) in self._connection.execute(SQL["written"], {"schema": self._name}).fetchall():
            raise ConfigurationError(
                f"{projection.where}/fold.sql: it writes to {table}, which is not made in its tables.sql"
            )

    def move(self, projection: Projection) -> None:
        for table in projection.table_names:
            self._connection.execute(
                sql.SQL("ALTER TABLE {} SET SCHEMA {}").format(
                    sql.Identifier(self._name, table), sql.Identifier(self._schema)
                )
            )

    def look_here(self) -> None:
        """Names without a schema mean the new tables, then those of the namespace; for this transaction."""
        path = [sql.Identifier(self._name), sql.Identifier(self._schema), sql.Identifier("public")]
        self._connection.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.SQL(", ").join(path)))
        self._connection.execute("SET LOCAL jit = off; SET LOCAL work_mem = '256MB'; SET LOCAL statement_timeout = 0")

    def over(self, query: str, **values: Any) -> None:
        """Let `new_events` be these events, in this transaction."""
        literals = {name: sql.Literal(value) for name, value in values.items()}
        view = sql.SQL("CREATE OR REPLACE TEMP VIEW new_events AS ") + postgres.script(query).format(**literals)
        self._connection.execute(view)

    def clear(self) -> None:
        self._connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(self._name)))

    def look_away(self) -> None:
        """Names without a schema mean the namespace's tables again."""
        self._connection.execute(sql.SQL("SET LOCAL search_path = {}, public").format(sql.Identifier(self._schema)))


def briefly(connection: Connection[Any]) -> None:
    """Wait for locks in this transaction only so long that those who wait behind it hardly notice: then LockNotAvailable."""
    connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(HELD)))


def stop_projectors(connection: Connection[Any]) -> None:
    """Wait for the open batches; no new one begins before this transaction ends. Claims of new partitions wait too.

    Whatever lock the transaction wants after this, it waits for `HELD` at most.
    """
    connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(PATIENCE)))
    connection.execute("LOCK TABLE projector_offset IN EXCLUSIVE MODE")
    connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(HELD)))
