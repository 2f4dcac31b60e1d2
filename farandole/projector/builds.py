"""Builds projections in the background of a projector: one of all projectors of a namespace is at it."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from farandole import postgres
from farandole.postgres import Connection, psycopg
from farandole.projections.building import Builder
from farandole.settings import Settings

log = logging.getLogger("farandole.projector")

#: Seconds between two looks at what is wanted, and between two tries while the database is away.
LOOK, AGAIN = 1.0, 5.0


class _Ending(Exception):
    """The projector ends; the build goes on with the next one."""


class Builds:
    """A thread with a connection of its own, for the block."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="projector-builds", daemon=True)
        self._connection: Connection[Any] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        with suppress(psycopg.Error):  # gone already
            if self._connection:
                # not `cancel`, which holds up every thread until the server answers
                self._connection.cancel_safe(timeout=AGAIN)
        self._thread.join(AGAIN)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with postgres.connect(self._settings, application="farandole projections") as self._connection:
                    self._look(self._connection)
            except _Ending:
                return
            except postgres.OUTAGES as failure:
                if not self._stop.is_set():
                    log.warning("builds_waiting seconds=%.0f: %s", AGAIN, failure)
                    self._stop.wait(AGAIN)
            except Exception:  # whatever it is: without this nothing would be built any more, and nobody told
                log.exception("builds_failed seconds=%.0f", AGAIN)
                self._stop.wait(AGAIN)

    def _look(self, connection: Connection[Any]) -> None:
        builder = Builder(self._settings, connection, said, self._pause)
        while True:
            with builder.alone() as mine:
                while mine and builder.build_next():
                    pass
            self._pause(LOOK)

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _Ending


def said(name: str, what: str) -> None:
    """Progress of a build, in the log."""
    level = logging.ERROR if what.startswith("failed") else logging.INFO
    log.log(level, "projection projection=%s %s", name, what)
