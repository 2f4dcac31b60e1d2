"""Keeps what others hang on tables and views that are replaced: their views, and the rights of their roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from farandole.errors import ConfigurationError
from farandole.postgres import Connection, dict_row, psycopg, sql
from farandole.projections.statements import SQL


@dataclass(frozen=True, slots=True)
class _View:
    schema: str
    name: str
    definition: str
    options: str | None
    depth: int
    owner: str
    comment: str | None

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)


@contextmanager
def kept(connection: Connection[Any], relations: Sequence[str], ours: Sequence[str]) -> Iterator[None]:
    """Drop the views of others that hang on `relations` (names of this schema); inside the block these are made anew;
    afterwards the others' views come back, and all rights. Views in `ours` are the caller's to make.

    Raises ConfigurationError when such a view does not fit what it hangs on any more: the transaction has to end.
    """
    here = current_schema(connection)
    old = [one for one in (sql.Identifier(here, name) for name in relations) if _exists(connection, one)]
    views = [_View(**row) for row in _rows(connection, "dependents", old)]
    grants = _rows(connection, "grants", [*old, *(view.identifier for view in views)])
    for view in reversed(views):
        _drop(connection, view)
    yield
    for view in views:
        if (view.schema, view.name) not in {(here, name) for name in ours}:
            _restore(connection, view)
    for grant in grants:
        _grant(connection, grant)


def current_schema(connection: Connection[Any]) -> str:
    """The namespace's: the first of the search_path."""
    row = connection.execute("SELECT current_schema()").fetchone()
    if row is None or row[0] is None:
        raise ConfigurationError("the schema of the namespace is not there; run `farandole migrate`")
    return str(row[0])


def _drop(connection: Connection[Any], view: _View) -> None:
    try:
        connection.execute(sql.SQL("DROP VIEW {}").format(view.identifier))
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"the view {view.schema}.{view.name} hangs on tables that are replaced, and only its owner {view.owner} can drop"
            " and make it anew: drop it meanwhile"
        ) from error


def _restore(connection: Connection[Any], view: _View) -> None:
    options = sql.SQL(f" WITH ({view.options})" if view.options else "")
    try:
        connection.execute(sql.SQL("CREATE VIEW {}{} AS ").format(view.identifier, options) + sql.SQL(view.definition))
    except psycopg.ProgrammingError as error:
        raise ConfigurationError(
            f"the view {view.schema}.{view.name}, which no projection's views.sql makes, does not fit the new tables:"
            f" {error.diag.message_primary}; change or drop it"
        ) from error
    connection.execute(sql.SQL("ALTER VIEW {} OWNER TO {}").format(view.identifier, sql.Identifier(view.owner)))
    connection.execute(sql.SQL("COMMENT ON VIEW {} IS {}").format(view.identifier, sql.Literal(view.comment)))


def _grant(connection: Connection[Any], grant: dict[str, Any]) -> None:
    relation = sql.Identifier(grant["schema"], grant["name"])
    if not _exists(connection, relation, grant["column"]):
        return  # it went with the old version
    column = sql.SQL(" ({})").format(sql.Identifier(grant["column"])) if grant["column"] else sql.SQL("")
    connection.execute(
        sql.SQL("GRANT {}{} ON {} TO {}{}").format(
            sql.SQL(grant["privilege"]),
            column,
            relation,
            sql.SQL("PUBLIC") if grant["everybody"] else sql.Identifier(grant["role"]),
            sql.SQL(" WITH GRANT OPTION" if grant["is_grantable"] else ""),
        )
    )


def _exists(connection: Connection[Any], relation: sql.Identifier, column: str | None = None) -> bool:
    row = connection.execute(
        "SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(%s) AND NOT attisdropped"
        " AND attname = coalesce(%s, attname)",
        (relation.as_string(connection), column),
    ).fetchone()
    return row is not None and row[0] > 0


def _rows(connection: Connection[Any], query: str, relations: Sequence[sql.Identifier]) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(SQL[query], {"relations": [one.as_string(connection) for one in relations]}).fetchall()
