"""A connection to Postgres for work that outages hold up: made anew when it breaks, the work tried again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from farandole import postgres
from farandole.outage import Outage
from farandole.settings import Settings

T = TypeVar("T")

#: A database that hangs must not hang its client: the statement is given up, which counts as an outage.
_PATIENCE = "SET statement_timeout = '10s'"

#: Seconds for all of one piece of work, whatever the server does.
_WORK = 12.0


class Session:
    """One piece of work at a time; in autocommit mode. Every call blocks.

    Args:
        application: its name in pg_stat_activity.
        outage: asked for one anew for each piece of work.
        opened: called with each new connection, before any work; where it raises, the connection is not used.
    """

    def __init__(
        self,
        settings: Settings,
        application: str,
        outage: Callable[[], Outage],
        opened: Callable[[postgres.Connection[Any]], object] = lambda connection: None,
    ) -> None:
        self._settings = settings
        self._application = application
        self._outage = outage
        self._opened = opened
        self._connection: postgres.Connection[Any] | None = None
        self._turn = threading.Lock()

    def run(self, work: Callable[[postgres.Connection[Any]], T]) -> T:
        """What `work` returns; it runs again and again while the database is away. Raises Stopped after too long."""

        def attempt() -> T:
            connection = self._alive()
            with postgres.bounded(connection, _WORK):
                return work(connection)

        with self._turn:
            return self._outage().through(attempt, postgres.is_outage)

    def open(self) -> None:
        """Connect now. Raises Unreachable, and what `opened` raises."""
        self._alive()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _alive(self) -> postgres.Connection[Any]:
        if self._connection is None or self._connection.broken or self._connection.closed:
            connection = postgres.connect(self._settings, application=self._application)
            try:
                connection.execute(_PATIENCE)
                self._opened(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


class Aside:
    """A session on a thread of its own, for the event loop."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, work: Callable[[postgres.Connection[Any]], T]) -> T:
        """As `Session.run`, one piece of work after another."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._session.run, work)

    def close(self) -> None:
        """Behind the work that is under way, without waiting for it."""
        self._thread.submit(self._session.close)
        self._thread.shutdown(wait=False)
