"""The projector's housekeeping: partitions made before they are needed, the policy carried out; on a thread of its own."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from farandole import postgres
from farandole.errors import FarandoleError
from farandole.postgres import OUTAGES, Connection, psycopg
from farandole.retention import partitions, policy
from farandole.retention.forgetting import Forgotten, forget
from farandole.settings import Settings

log = logging.getLogger("farandole.retention")

#: Seconds between two looks: a partition is made two months ahead, so nothing hurries.
EVERY = 600.0
#: What the policy would find anew in less time is not worth a look at all jobs.
CARRY_OUT = timedelta(hours=6)
#: Seconds that the end of a projector waits for it; a statement that is under way is cancelled.
_PATIENCE = 5.0


class Upkeep:
    """For the length of a `with` block. What goes wrong is logged, and tried again at the next look."""

    def __init__(self, settings: Settings, every: float = EVERY) -> None:
        self._settings = settings
        self._every = every
        self._stop = threading.Event()
        self._connection: Connection[Any] | None = None
        self._thread = threading.Thread(target=self._run, name="projector-upkeep", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        connection = self._connection
        if connection is not None:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=_PATIENCE)
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with postgres.connect(self._settings, application="farandole upkeep") as connection:
                    self._connection = connection
                    tend(self._settings, connection, stop=self._stop)
            except (*OUTAGES, FarandoleError) as failure:
                if not self._stop.is_set():
                    log.warning("upkeep_put_off seconds=%.0f: %s", self._every, failure)
            except Exception:  # whatever it is: without this no partition would be made any more, and nobody told
                log.exception("upkeep_failed seconds=%.0f", self._every)
            finally:
                self._connection = None
            self._stop.wait(self._every)


def tend(
    settings: Settings,
    connection: Connection[Any],
    now: datetime | None = None,
    stop: threading.Event | None = None,
) -> Forgotten | None:
    """One look, unless another projector is at it: partitions, and the policy where it is due.

    `now` is the database's if not given. Returns what was forgotten; None when it was not due.
    """
    with postgres.try_advisory_lock(connection, "upkeep", settings.schema_name) as mine:
        row = connection.execute("SELECT now()").fetchone()
        if not mine or row is None:
            return None
        now, standing = now or row[0], policy.read(connection)
        partitions.make_ahead(connection, now, monthly=standing.keep is not None)
        if standing.keep is None or (standing.looked_at and now - standing.looked_at < CARRY_OUT):
            return None
        return forget(settings, connection, standing.keep, now, stop.is_set if stop else lambda: False)
