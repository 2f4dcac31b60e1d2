"""What is found without trials: in the SQL's words, in the catalog, and in the locks of one run that is taken back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from farandole import postgres
from farandole.errors import ConfigurationError
from farandole.postgres import psycopg
from farandole.projections.checking import advice, wording
from farandole.projections.checking.findings import Finding
from farandole.projections.checking.sandbox import OWN, SQL, Refused, Sandbox, refusals
from farandole.projections.folders import Projection
from farandole.projections.statements import apply

_FLOATS = ("real", "double precision", "real[]", "double precision[]")


def words(projection: Projection) -> Iterator[Finding]:
    """What must not even be run: a fold that ends the transaction it is part of."""
    for line, said in wording.ends_of_transaction(projection.fold):
        yield Finding(
            "transaction",
            f"{projection.where}/fold.sql:{line}: {said} ends or begins a transaction; the projector does that",
            ["Leave it out: events, rows and offsets are committed together, or not at all."],
        )


def clock(projection: Projection) -> Iterator[Finding]:
    for line, said in wording.clock(projection.fold)[:1]:
        yield Finding(
            "clock",
            f"{projection.where}/fold.sql:{line}: {said} reads the clock; folded again later, the same events give other"
            " rows",
            ["Take the time from the events: occurred_at, or logged_at, which is Kafka's."],
        )


def views(sandbox: Sandbox) -> Iterator[Finding]:
    """Mistakes in views.sql. What its views read must be there, made by others too; that is no fault of this projection."""
    if not sandbox.projection.views.strip():
        return
    connection = sandbox.connection
    try:
        with refusals(), connection.transaction(force_rollback=True):  # a view that stays would hold on to real tables
            if sandbox.core:
                apply(connection, sandbox.core, "views.sql")
            apply(connection, sandbox.projection, "views.sql")
    except ConfigurationError as error:
        absent = isinstance(error.__cause__, psycopg.errors.UndefinedTable)
        yield Finding("typo", str(error), severity="warning" if absent else "fault")
    except Refused as refused:
        yield Finding("error", f"views.sql fails: {refused}")


def catalog(sandbox: Sandbox) -> Iterator[Finding]:
    """What tables.sql makes besides tables, tables without a key, columns of floating-point numbers."""
    others = [f"{kind} {name}" for kind, name in sandbox.made if kind != "table"]
    if others:
        yield Finding(
            "tables",
            f"{sandbox.projection.where}/tables.sql makes {', '.join(others)}; a projection is built from tables and indexes",
            [
                "Make only tables, by CREATE TABLE IF NOT EXISTS without a schema, and indexes; views belong in views.sql."
            ],
        )
    fold = sandbox.projection.fold
    adds = wording.says(fold, r"\b(?:sum|avg|stddev\w*|var\w*)\s*\(|[+]")
    for table, columns in sandbox.columns.items():
        if table not in sandbox.keys:
            yield Finding(
                "key",
                f"table {table} has no primary key and no unique one: a row cannot be found again, nor be named in ON CONFLICT",
                ["Give it the key that its rows are grouped by, such as PRIMARY KEY (stage, day)."],
                severity="warning",
            )
        for column, kind in columns.items():
            if kind in _FLOATS:
                yield Finding(
                    "float",
                    f"column {table}.{column} is {kind}: sums of such numbers depend on the order of the events",
                    [advice.of_float(column)],
                    severity="fault" if adds else "warning",
                )


def rehearsed(sandbox: Sandbox, ids: Sequence[UUID]) -> list[Finding]:
    """Run the fold once over `ids` and take it back: mistakes in the SQL, and which relations it reads and writes.

    Nothing of it lasts, so that a fold that writes elsewhere is found out before it has done so.
    """
    connection = sandbox.connection
    sandbox.empty()
    try:
        with refusals(), connection.transaction():
            sandbox.take(connection, ids)
            if sandbox.core:
                apply(connection, sandbox.core, "fold.sql")
        with refusals(), connection.transaction(force_rollback=True):
            sandbox.offer(connection, ids)
            apply(connection, sandbox.projection, "fold.sql")
            used = connection.execute(postgres.script(SQL["locked"])).fetchall()
    except ConfigurationError as error:
        return _mistake(error)
    except Refused as refused:  # a lock, or the clock
        return [Finding("error", f"the fold fails: {refused}", advice.of_error(refused.sqlstate))]
    tables = sandbox.core.table_names if sandbox.core else []
    sandbox.leans = any(schema == sandbox.schema and name in tables for schema, name, _, _ in used)
    return list(_elsewhere(sandbox, used))


def _mistake(error: ConfigurationError) -> list[Finding]:
    """Of the SQL; what the database has against the events is left to the trials."""
    cause = error.__cause__
    sqlstate = (cause.sqlstate or "") if isinstance(cause, psycopg.Error) else ""
    if sqlstate == "42P10":
        return [
            Finding("key", str(error), ["Add PRIMARY KEY or UNIQUE over the columns of ON CONFLICT to tables.sql."])
        ]
    return [Finding("typo", str(error))] if sqlstate[:2] == "42" else []


def _elsewhere(sandbox: Sandbox, used: Sequence[tuple[str, str, str, bool]]) -> Iterator[Finding]:
    here = {name for schema, name, _, _ in used if schema == sandbox.schema}
    real = {name for schema, name, _, _ in used if schema != sandbox.schema} - here
    own = {*sandbox.columns, *OWN}
    written = sorted(name for _, name, kind, written in used if written and kind != "S" and name not in sandbox.columns)
    if written:
        yield Finding(
            "foreign_write",
            f"fold.sql writes to {', '.join(written)}, which it did not make in tables.sql",
            ["Write to tables of its own: a refold builds those anew and runs the fold over every event again."],
        )
    read = sorted((real | (here - own)) - set(written) - _sequences(used))
    if read:
        yield Finding(
            "reads",
            f"fold.sql reads {', '.join(read)}: the rows depend on what is there when the events are folded, and a refold finds"
            " something else there",
            ["Read such tables in views.sql, when someone looks; fold only what the events say."],
            severity="warning",
        )


def _sequences(used: Sequence[tuple[str, str, str, bool]]) -> set[str]:
    return {name for _, name, kind, _ in used if kind == "S"}
