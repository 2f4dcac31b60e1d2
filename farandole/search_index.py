"""The index for full-text search over payloads: made and dropped while the projector goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

from farandole import postgres, reading
from farandole.errors import FarandoleError
from farandole.postgres import Connection, sql
from farandole.settings import Settings

#: Of the whole event_log; its partitions have others.
NAME = "event_log_search"

#: Word by word what jobs.sql and jobs_met.sql search for, or the planner does not see that they fit. Larger payloads are not
#: indexed: beyond a megabyte of words Postgres would refuse the event.
_ON: LiteralString = (
    "USING gin (jsonb_to_tsvector('simple', body, '[\"string\", \"numeric\"]')) WHERE octet_length(value) <= 100000"
)

#: Called with each table that is indexed.
Progress = Callable[[str], None]


def switch_on(settings: Settings, progress: Progress) -> None:
    """Make the index, or what is missing of it after an interruption. Nobody waits for it, however long it takes.

    Raises FarandoleError when somebody else is at it.
    """
    with _alone(settings) as connection:
        whole = _kind(connection) == "p"
        if whole:
            _run(connection, "CREATE INDEX IF NOT EXISTS {} ON ONLY event_log " + _ON, NAME)
        while missing := [part for part in reading.rows(connection, "search_parts", {}) if not _complete(part)]:
            part = missing[0]
            name = part["index_name"]
            if name is not None and not part["usable"]:  # a build that was interrupted
                _run(connection, "DROP INDEX CONCURRENTLY IF EXISTS {}", name)
                name = None
            if name is None:
                progress(part["name"])
                name = _name(part["name"]) if whole else NAME
                _run(connection, "CREATE INDEX CONCURRENTLY {} ON {} " + _ON, name, part["name"])
            if whole:
                _run(connection, "ALTER INDEX {} ATTACH PARTITION {}", NAME, name)


def switch_off(settings: Settings) -> bool:
    """Drop the index; whether there was one."""
    with _alone(settings) as connection:
        there = [part["index_name"] for part in reading.rows(connection, "search_parts", {}) if part["index_name"]]
        if _kind(connection) == "p":
            _run(connection, "DROP INDEX IF EXISTS {}", NAME)
        for name in there:
            _run(connection, "DROP INDEX CONCURRENTLY IF EXISTS {}", name)
        return bool(there)


@contextmanager
def _alone(settings: Settings) -> Iterator[Connection[Any]]:
    def busy() -> None:  # waiting for the lock would hold up the other one, which waits for all who wait
        raise FarandoleError("somebody else is switching the search on or off; try again when that is done")

    with (
        postgres.connect(settings, application="farandole search") as connection,
        postgres.advisory_lock(connection, "search", settings.schema_name, waiting=busy),
    ):
        if _kind(connection) is None:
            raise FarandoleError("there is no event log yet; run `farandole migrate`")
        connection.execute("SET lock_timeout = '10s'")
        yield connection


def _kind(connection: Connection[Any]) -> str | None:
    row = connection.execute("SELECT relkind::text FROM pg_class WHERE oid = to_regclass('event_log')").fetchone()
    return row[0] if row else None


def _complete(part: dict[str, Any]) -> bool:
    return bool(part["attached"] and part["usable"])


def _name(partition: str) -> str:
    """Of a partition's index; Postgres cuts names off at 63 bytes."""
    return f"{partition[:56]}_search"


def _run(connection: Connection[Any], statement: LiteralString, *names: str) -> None:
    connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)), prepare=False)
