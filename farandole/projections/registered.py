"""What of projections the database holds: those that are live, with their SQL, and those that are being built."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from farandole import postgres
from farandole.errors import ConfigurationError
from farandole.postgres import Connection, dict_row, psycopg
from farandole.projections.beside import briefly
from farandole.projections.folders import CORE, Projection
from farandole.projections.replacing import replace, texts
from farandole.projections.statements import SQL, told
from farandole.settings import Settings

#: Tries to replace what somebody reads in a long transaction, and seconds between two: everybody else reads meanwhile.
TRIES, AGAIN = 6, 0.5


@dataclass(frozen=True, slots=True)
class Build:
    """A version that is to become live."""

    projection: Projection
    state: str  #: wanted, building, failed
    folded: int  #: events
    expected: int  #: about as many in all
    error: str | None


def builds(connection: Connection[Any]) -> list[Build]:
    """What is wanted, under way or has failed; in the order in which it is built."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            "SELECT name, tables, fold, views, state, folded, expected, error FROM projection_build"
            " ORDER BY state <> 'building', name <> %s, wanted_at, name",
            (CORE,),
        ).fetchall()
    return [
        Build(
            Projection(row["name"], None, row["tables"], row["fold"], row["views"]),
            *(row[name] for name in ("state", "folded", "expected", "error")),
        )
        for row in rows
    ]


def register(connection: Connection[Any], settings: Settings, found: Sequence[Projection]) -> list[str]:
    """Say what the folders want: a fold that is new or has changed is to be built, views are replaced at once.

    Returns what is wrong with views, in words; those keep their old form, and everything else is registered.
    """
    problems = []
    with connection.transaction():
        number = postgres.lock_number("register", settings.schema_name)
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (number,))
        rows = connection.execute(
            "SELECT name, CASE WHEN fold IS NOT NULL OR error IS NULL THEN hash END, views_hash FROM projection"
        ).fetchall()  # no hash: an older version's, which was not folded until its SQL was known
        hashes = {name: (fold, views) for name, fold, views in rows}
        for projection in found:
            fold, views = hashes.get(projection.name, (None, None))
            if fold != projection.hash:
                want(connection, projection)
                continue
            _as_it_is(connection, projection)
            if views != projection.views_hash:
                problems += _try_views(connection, projection)
    return problems


def want(connection: Connection[Any], projection: Projection, anew: bool = False) -> None:
    """Have a version built. One that failed stays so until it is wanted `anew`, or another one is wanted."""
    connection.execute(SQL["want"], texts(projection) | {"anew": anew})


def _as_it_is(connection: Connection[Any], projection: Projection) -> None:
    """The live version is the wanted one: another that was wanted is not any more."""
    connection.execute(
        "UPDATE projection SET tables = %s, fold = %s WHERE name = %s AND tables IS NULL",  # folded by an older version
        (projection.tables, projection.fold, projection.name),
    )
    connection.execute(
        "DELETE FROM projection_build WHERE name = %s AND hash <> %s", (projection.name, projection.hash)
    )


def _try_views(connection: Connection[Any], projection: Projection) -> list[str]:
    for _ in range(TRIES):
        try:
            with connection.transaction():
                briefly(connection)
                replace(connection, projection)
                connection.execute("SET LOCAL lock_timeout TO DEFAULT")
        except ConfigurationError as error:
            return [str(error)]
        except psycopg.errors.LockNotAvailable:
            time.sleep(AGAIN)
        except psycopg.Error as error:
            if postgres.is_outage(error):
                raise
            return [told(projection, "views.sql", error)]
        else:
            return []
    return [f"{projection.where}/views.sql: somebody reads the old views; they are replaced at the next start"]
