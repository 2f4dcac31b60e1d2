"""Postgres connections as farandole sets them up. The only module that imports psycopg."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection, sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from farandole.errors import ConfigurationError, Unreachable
from farandole.settings import Settings

#: Seconds. A database that does not answer within this is reported as unreachable.
ANSWER = 10

#: Seconds. A vanished peer is noticed after about this, where the network says nothing.
_KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3}


def connect(
    settings: Settings, *, autocommit: bool = True, application: str = "farandole", **extra: Any
) -> Connection[Any]:
    """A connection whose search_path starts with the namespace's schema. Raises Unreachable when none can be made."""
    try:
        return psycopg.connect(settings.database, autocommit=autocommit, **_arguments(settings, application), **extra)
    except psycopg.OperationalError as failure:
        raise _unreachable(failure) from failure
    except psycopg.ProgrammingError:
        raise _malformed() from None


async def connect_async(settings: Settings, *, application: str = "farandole") -> AsyncConnection[dict[str, Any]]:
    """The same for asyncio, rows as dicts."""
    try:
        return await AsyncConnection.connect(
            settings.database, autocommit=True, row_factory=dict_row, **_arguments(settings, application)
        )
    except psycopg.OperationalError as failure:
        raise _unreachable(failure) from failure
    except psycopg.ProgrammingError:
        raise _malformed() from None


def _malformed() -> ConfigurationError:
    """Without the client's own words: they quote the URL, password and all."""
    return ConfigurationError(
        "DATABASE_URL is not a Postgres URL; expected postgresql://user:password@host:port/database"
    )


def _arguments(settings: Settings, application: str) -> dict[str, Any]:
    options = f"-c search_path={settings.schema_name},public -c timezone=UTC"
    # The server's side too: it must miss a vanished worker, or that one's locks outlive it for hours.
    options += "".join(f" -c tcp_{name}={value}" for name, value in _KEEPALIVE.items())
    return {"connect_timeout": ANSWER, "options": options, "application_name": application, **_KEEPALIVE}


def _unreachable(failure: psycopg.Error) -> Unreachable:
    return Unreachable(f"Postgres does not answer: {_first_line(failure)}; check DATABASE_URL or run `farandole up`")


def _first_line(failure: Exception) -> str:
    return (str(failure).splitlines() or ["no reason given"])[0]


#: What to catch around database work; `is_outage` then tells an outage from a refusal.
OUTAGES = (psycopg.Error, Unreachable)


def is_outage(failure: BaseException) -> bool:
    """Whether the database is away or busy (connection, lock, disk, shutdown), as opposed to having said no to the data.

    SQLSTATE classes: 08 connection, 40 rollback, 53 resources, 55 locks, 57 operator, 58 system.
    """
    if isinstance(failure, Unreachable):
        return True
    if not isinstance(failure, psycopg.Error):
        return False
    if failure.sqlstate is None:  # the client's own: the connection broke
        return isinstance(failure, psycopg.OperationalError | psycopg.InterfaceError)
    return failure.sqlstate[:2] in ("08", "40", "53", "55", "57", "58") or failure.sqlstate in _STANDING_ASIDE


#: A read-only standby after a failover, and a session the server ended because it stood still inside a transaction.
_STANDING_ASIDE = ("25006", "25P03")


def is_away(failure: BaseException) -> bool:
    """Whether the database cannot be reached at all; stricter than `is_outage`, for errors of a user's own statements."""
    if isinstance(failure, Unreachable):
        return True
    if not isinstance(failure, psycopg.OperationalError):
        return False
    return failure.sqlstate is None or failure.sqlstate[:2] == "08" or failure.sqlstate[:3] == "57P"


@contextmanager
def bounded(connection: Connection[Any], seconds: float) -> Iterator[None]:
    """Cut the connection off when the block takes longer. A server that stands still (stopped, a stalled disk) answers
    nothing, breaks nothing, and its own timeouts stand still with it; the block then ends with an outage."""
    timer = threading.Timer(seconds, cut_off, (connection,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def bounded_async(connection: AsyncConnection[Any], seconds: float) -> Iterator[None]:
    """The same on the event loop. A cancellation would not do: it waits for the server's word."""
    timer = asyncio.get_running_loop().call_later(seconds, cut_off, connection)
    try:
        yield
    finally:
        timer.cancel()


def cut_off(connection: Connection[Any] | AsyncConnection[Any]) -> None:
    """End the connection without a word to the server; who waits for an answer on it gets an outage."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as other:
        other.shutdown(socket.SHUT_RDWR)


def lock_number(*parts: str) -> int:
    """The advisory lock of a name; 63 bits, so that two names rarely meet (and only wait for each other if they do)."""
    text = "\0".join(parts).encode()
    return (zlib.crc32(text) << 31) ^ zlib.crc32(text[::-1] + b"\0")


@contextmanager
def advisory_lock(
    connection: Connection[Any], *parts: str, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the lock of a name for the block; waits for whoever holds it, after a call of `waiting`. It ends with the
    connection, kill -9 included."""
    number = lock_number(*parts)
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (number,)).fetchone()
    if not (row and row[0]):
        waiting()
        connection.execute("SELECT pg_advisory_lock(%s)", (number,))
    try:
        yield
    finally:
        if not connection.broken:
            connection.execute("SELECT pg_advisory_unlock(%s)", (number,))


@contextmanager
def try_advisory_lock(connection: Connection[Any], *parts: str) -> Iterator[bool]:
    """Hold the lock of a name for the block if nobody else does; whether that is so. It ends with the connection."""
    number = lock_number(*parts)
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (number,)).fetchone()
    mine = bool(row and row[0])
    try:
        yield mine
    finally:
        if mine and not connection.broken:
            connection.execute("SELECT pg_advisory_unlock(%s)", (number,))


def texts(module: str, pattern: str = "*.sql") -> dict[str, str]:
    """The statements in the folder `sql` beside a module (its `__file__`), by the names of their files."""
    return {file.stem: file.read_text(encoding="utf-8") for file in (Path(module).parent / "sql").glob(pattern)}


def script(text: str) -> sql.SQL:
    """SQL from a .sql file: many statements, no parameters, sent as it stands."""
    return sql.SQL(text)


__all__ = [
    "OUTAGES",
    "AsyncConnection",
    "Connection",
    "Jsonb",
    "advisory_lock",
    "bounded",
    "bounded_async",
    "connect",
    "connect_async",
    "cut_off",
    "dict_row",
    "is_away",
    "is_outage",
    "lock_number",
    "psycopg",
    "script",
    "sql",
    "texts",
    "try_advisory_lock",
]
