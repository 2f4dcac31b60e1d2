"""The projector's housekeeping: partitions made before they are needed, the policy carried out; on a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from farandole import postgres
from farandole.chore import Chore
from farandole.postgres import Connection
from farandole.retention import partitions, policy
from farandole.retention.forgetting import Forgotten, forget
from farandole.settings import Settings

log = logging.getLogger("farandole.retention")

#: Seconds between two looks: a partition is made two months ahead, so nothing hurries.
EVERY = 600.0
#: What the policy would find anew in less time is not worth a look at all jobs.
CARRY_OUT = timedelta(hours=6)


class Upkeep(Chore):
    """Looks now and then."""

    def __init__(self, settings: Settings, every: float = EVERY) -> None:
        super().__init__(settings, "upkeep", every, every, log)

    def work(self, connection: Connection[Any]) -> None:
        """One look."""
        tend(self.settings, connection, ending=self.ending)


def tend(
    settings: Settings,
    connection: Connection[Any],
    now: datetime | None = None,
    ending: Callable[[], bool] = lambda: False,
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
        return forget(settings, connection, standing.keep, now, ending)
