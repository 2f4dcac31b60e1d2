"""Replaces the tables and views of a projection in one transaction, and keeps what others hang on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from farandole.errors import ConfigurationError
from farandole.postgres import Connection, psycopg, sql
from farandole.projections.dependents import current_schema, kept
from farandole.projections.folders import CORE, Projection
from farandole.projections.statements import SQL, apply
from farandole.reader_role import open_to_readers


def live(connection: Connection[Any]) -> list[Projection]:
    """What every projector folds, the core first; with the views they have."""
    rows = connection.execute(
        "SELECT name, NULL, tables, fold, coalesce(views, '') FROM projection WHERE tables IS NOT NULL"
        " ORDER BY name <> %s, name",
        (CORE,),
    ).fetchall()
    return [Projection(*row) for row in rows]


def replace(connection: Connection[Any], projection: Projection, tables: Callable[[], None] | None = None) -> None:
    """Make `projection` the live version: its row, its tables (by `tables`, once the old ones are gone), and its views.

    Without `tables` those that are there stay. Raises ConfigurationError for a mistake in views.sql, or when a view that
    others made does not fit any more; the caller's transaction then ends with nothing changed.
    """
    standing = live(connection)
    old = next((one for one in standing if one.name == projection.name), None)
    views = _once(*(one.view_names for one in standing), projection.view_names)
    names = _once(old.table_names if old else [], projection.table_names) if tables else []
    with kept(connection, [*names, *views], ours=views):
        _drop_views(connection, projection, views)
        if tables:
            _drop("TABLE", connection, names)
            tables()
            open_to_readers(connection, projection.table_names)
        connection.execute(SQL["go_live"], texts(projection) | {"built": tables is not None})
        for one in live(connection):
            if one.views.strip():
                before = _relations(connection)
                apply(connection, one, "views.sql")
                if one.name == projection.name:
                    _only_views(projection, before, _relations(connection))


def _only_views(projection: Projection, before: set[str], after: set[str]) -> None:
    """What its name does not tell could not be replaced the next time."""
    if others := sorted(after - before - set(projection.view_names)):
        raise ConfigurationError(
            f"{projection.where}/views.sql: expected only CREATE VIEW name, each on a line of its own, in lower case and"
            f" without a schema; it makes {', '.join(others)}"
        )


def _relations(connection: Connection[Any]) -> set[str]:
    """Tables and views of the namespace, of any kind."""
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind NOT IN ('i', 'I', 't')"
    ).fetchall()
    return {name for (name,) in rows}


def remove(connection: Connection[Any], name: str) -> None:
    """Drop a projection, with the tables and views of its live version: what a build would have made may be others'.

    What others hang on them must be gone: raises ConfigurationError if not.
    """
    for old in live(connection):
        if old.name == name:
            _drop("VIEW", connection, old.view_names)
            _drop("TABLE", connection, old.table_names)
    for table in ("projection", "projection_build", "projection_backlog"):
        connection.execute(sql.SQL("DELETE FROM {} WHERE name = %s").format(sql.Identifier(table)), (name,))


def texts(projection: Projection) -> dict[str, str]:
    """What the database holds of a version."""
    return {
        "name": projection.name,
        "hash": projection.hash,
        "views_hash": projection.views_hash,
        "tables": projection.tables,
        "fold": projection.fold,
        "views": projection.views,
    }


def _once(*lists: list[str]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))


def _drop_views(connection: Connection[Any], projection: Projection, names: list[str]) -> None:
    try:
        _drop("VIEW", connection, names)
    except psycopg.errors.WrongObjectType as error:
        raise ConfigurationError(
            f"{projection.where}/views.sql: {error.diag.message_primary}, but a table; choose another name"
        ) from error


def _drop(kind: str, connection: Connection[Any], names: list[str]) -> None:
    """Of the namespace's schema alone: in public there may be others of these names."""
    statement = sql.SQL("DROP VIEW IF EXISTS {}" if kind == "VIEW" else "DROP TABLE IF EXISTS {}")
    here = current_schema(connection)
    for name in reversed(names):
        try:
            connection.execute(statement.format(sql.Identifier(here, name)))
        except psycopg.errors.DependentObjectsStillExist as error:
            detail = str(error.diag.message_detail or error).replace("\n", "; ")
            raise ConfigurationError(f"{name} is used by others: {detail}") from error
