"""Brings the tables of projections to what their folders say, and refolds them from the event log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

from farandole import postgres
from farandole.errors import ConfigurationError
from farandole.postgres import Connection, psycopg, sql
from farandole.projections.folders import Projection
from farandole.settings import Settings

#: Called with a projection's name and what happens to it ("refolding", "folded 123 events").
Progress = Callable[[str, str], None]

_VIEW = re.compile(r"^\s*CREATE\s+(?:OR\s+REPLACE\s+)?VIEW\s+(\w+)", re.IGNORECASE | re.MULTILINE)


def install(settings: Settings, projections: Sequence[Projection], progress: Progress | None = None) -> None:
    """Bring tables, rows and views to what the folders say; one that is new or has changed is refolded."""
    with _alone(settings) as connection:
        for projection in projections:
            _install(connection, projection, projections, progress or _silent)


def refold(
    settings: Settings, projections: Sequence[Projection], name: str | None = None, progress: Progress | None = None
) -> int:
    """Fold all of event_log again into `name` (default: every projection); returns the number of events.

    Readers see the old rows until it is done; projectors wait meanwhile. No effect runs: only SQL does.
    """
    chosen = [projection for projection in projections if name in (None, projection.name)]
    if not chosen:
        known = ", ".join(projection.name for projection in projections)
        raise ConfigurationError(f"no projection {name!r}; there are {known}")
    events = 0
    with _alone(settings) as connection:
        for projection in chosen:
            with connection.transaction():
                events = _refold(connection, projection, progress or _silent)
    return events


@contextmanager
def _alone(settings: Settings) -> Iterator[Connection[Any]]:
    """A connection, while nobody else changes the projections of this namespace."""
    with (
        postgres.connect(settings, application="farandole projections") as connection,
        postgres.advisory_lock(connection, "projections", settings.schema_name),
    ):
        yield connection


def _install(
    connection: Connection[Any], projection: Projection, every: Sequence[Projection], progress: Progress
) -> None:
    row = connection.execute("SELECT hash, views_hash FROM projection WHERE name = %s", (projection.name,)).fetchone()
    if row == (projection.hash, projection.views_hash):
        return
    with connection.transaction():
        if row is None or row[0] != projection.hash:
            _stop_projectors(connection)  # first of all locks, as in a projector's own transaction
            _drop_tables(connection, projection)
            _refold(connection, projection, progress)
        folded = dict(connection.execute("SELECT name, hash FROM projection").fetchall())
        for other in every:  # CASCADE takes views of others along, and their hashes would not tell
            if folded.get(other.name) == other.hash:
                _apply_views(connection, other)


def _refold(connection: Connection[Any], projection: Projection, progress: Progress) -> int:
    """Fold everything beside the tables, then change only the rows that differ, inside the caller's transaction."""
    progress(projection.name, "refolding")
    _stop_projectors(connection)
    apply(connection, projection, "tables.sql", projection.tables)
    connection.execute("SET LOCAL jit = off; SET LOCAL work_mem = '256MB'")  # sorts of the whole log
    connection.execute("CREATE TEMP VIEW new_events AS SELECT * FROM event_log")
    for table in projection.table_names:  # temporary tables come first in the search path: the fold writes there
        _run(connection, "CREATE TEMP TABLE {table} (LIKE {table} INCLUDING ALL)", table)
    apply(connection, projection, "fold.sql", projection.fold)
    connection.execute("DROP VIEW new_events")
    for table in projection.table_names:
        _replace(connection, table)
        _run(connection, "DROP TABLE {twin}", table)  # now: a view made on it would be temporary too
    row = connection.execute("SELECT count(*) FROM event_log").fetchone()
    events = int(row[0]) if row else 0
    connection.execute(
        "INSERT INTO projection (name, hash) VALUES (%s, %s)"
        " ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, suspended = NULL, folded_at = now()",
        (projection.name, projection.hash),
    )
    progress(projection.name, f"folded {events} events")
    return events


def _replace(connection: Connection[Any], table: str) -> None:
    """Make the table's rows those of its temporary twin. Rows that are right already are left alone."""
    try:
        with connection.transaction():
            _run(
                connection,
                "DELETE FROM {real} AS old WHERE NOT EXISTS (SELECT FROM {twin} AS new WHERE new = old)",
                table,
            )
    except psycopg.errors.UndefinedFunction:  # a column that has no equality, such as json
        _run(connection, "DELETE FROM {real}", table)
        _run(connection, "INSERT INTO {real} SELECT * FROM {twin}", table)
    else:
        _run(
            connection,
            "INSERT INTO {real} SELECT * FROM {twin} AS new"
            " WHERE NOT EXISTS (SELECT FROM {real} AS old WHERE old = new)",
            table,
        )


def _run(connection: Connection[Any], statement: LiteralString, table: str) -> None:
    """Run a statement on {table}: {real} is the lasting one, {twin} the temporary one."""
    real = connection.execute("SELECT current_schema()").fetchone()
    names = {"real": sql.Identifier(real[0] if real else "public", table), "twin": sql.Identifier("pg_temp", table)}
    connection.execute(sql.SQL(statement).format(**names, table=sql.Identifier(table)))


def _stop_projectors(connection: Connection[Any]) -> None:
    """Wait for the open batches; no new one begins before this transaction ends. Claims of new partitions wait too."""
    connection.execute("LOCK TABLE projector_offset IN EXCLUSIVE MODE")


def _drop_tables(connection: Connection[Any], projection: Projection) -> None:
    """Tables may have other columns now; what depends on them goes too and comes again with views.sql."""
    for table in projection.table_names:
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(sql.Identifier(table)))


def _apply_views(connection: Connection[Any], projection: Projection) -> None:
    for view in reversed(_VIEW.findall(projection.views)):  # CREATE OR REPLACE cannot take a column away
        connection.execute(sql.SQL("DROP VIEW IF EXISTS {} CASCADE").format(sql.Identifier(view)))
    if projection.views.strip():
        apply(connection, projection, "views.sql", projection.views)
    given = (projection.views_hash, projection.name)
    connection.execute("UPDATE projection SET views_hash = %s WHERE name = %s", given)


def apply(connection: Connection[Any], projection: Projection, file: str, text: str) -> None:
    """Run one of a projection's files. A mistake in it raises ConfigurationError with file and line."""
    try:
        connection.execute(postgres.script(text), prepare=False)
    except psycopg.Error as error:
        if postgres.is_outage(error):
            raise
        position = int(error.diag.statement_position or 1)
        line = text[:position].count("\n") + 1
        raise ConfigurationError(f"{projection.folder / file}:{line}: {error.diag.message_primary or error}") from error


def _silent(_name: str, _what: str) -> None:
    pass
