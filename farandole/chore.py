"""Work beside the folding: a thread with a connection of its own, which neither a mistake nor an outage ends."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from farandole import postgres
from farandole.postgres import Connection, psycopg
from farandole.settings import Settings

#: Seconds that the end of a projector waits for a chore; a statement that is under way is cancelled.
_PATIENCE = 5.0


class Ending(Exception):
    """The projector ends; what is left is done by the next one."""


class Chore(ABC):
    """Does its `work` again and again, for the length of a `with` block.

    Args:
        name: of the thread, the connection and the log lines.
        every: seconds between two times.
        again: seconds after something went wrong; it is logged.
    """

    def __init__(self, settings: Settings, name: str, every: float, again: float, log: logging.Logger) -> None:
        self.settings = settings
        self._name, self._every, self._again, self._log = name, every, again, log
        self._stop = threading.Event()
        self._connection: Connection[Any] | None = None
        self._thread = threading.Thread(target=self._run, name=f"projector-{name}", daemon=True)

    @abstractmethod
    def work(self, connection: Connection[Any]) -> object:
        """Once; what takes long calls `pause` now and then."""

    def pause(self, seconds: float = 0) -> None:
        """Wait. Raises Ending when the projector ends."""
        if self._stop.wait(seconds):
            raise Ending

    def ending(self) -> bool:
        """Whether the projector ends."""
        return self._stop.is_set()

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
                self._connection.cancel_safe(timeout=_PATIENCE)
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with postgres.connect(self.settings, application=f"farandole {self._name}") as self._connection:
                    while True:
                        self.work(self._connection)
                        self.pause(self._every)
            except Ending:
                return
            except Exception as failure:  # noqa: BLE001  logged: else nothing would be done any more, and nobody told
                if self._stop.is_set():
                    return  # its statement was cancelled
                known = isinstance(failure, postgres.OUTAGES)
                self._log.log(
                    logging.WARNING if known else logging.ERROR,
                    "%s_put_off seconds=%.0f: %s",
                    self._name,
                    self._again,
                    failure,
                    exc_info=None if known else failure,
                )
                self._stop.wait(self._again)
