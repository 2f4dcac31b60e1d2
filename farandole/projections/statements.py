"""Runs the SQL of projections' files; a mistake in one is told with its file and line."""

from __future__ import annotations

from typing import Any

from farandole import postgres
from farandole.errors import ConfigurationError
from farandole.postgres import Connection, psycopg
from farandole.projections.folders import Projection

SQL = {name: postgres.script(text) for name, text in postgres.texts(__file__).items()}


def apply(connection: Connection[Any], projection: Projection, file: str) -> None:
    """Run one of a projection's files. A mistake in it raises ConfigurationError with file and line."""
    text = projection.text(file)
    try:
        connection.execute(postgres.script(text), prepare=False)
    except psycopg.Error as error:
        if postgres.is_outage(error):
            raise
        raise ConfigurationError(told(projection, file, error)) from error


def told(projection: Projection, file: str, error: psycopg.Error) -> str:
    """`stage_times/fold.sql:3: column "n" does not exist`; without the line where the server does not know it."""
    where = f"{projection.where}/{file}"
    if error.diag.statement_position:
        line = projection.text(file)[: int(error.diag.statement_position)].count("\n") + 1
        where += f":{line}"
    return f"{where}: {error.diag.message_primary or error}"
