"""Steps that a worker left in the middle and nobody has come back to: settled by the workers of their agent that run.

Whoever handles the event next takes such a step over. But nobody handles an event that was dead-lettered unheard (`killed`),
discarded, or skipped: its step would stay begun, and its money reserved. A sweep does what a take-over does, short of a call,
and takes nothing away: whoever comes later finds a step that may run, under the same key, and an owner that seemed to be gone
and lives still says how it ended.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from farandole.postgres import Connection

log = logging.getLogger("farandole.steps")

#: A lease must have ended before so many looks, which are a lease apart and each found the database there. After an outage
#: that was longer than every lease their owners have this long to renew them; and who is about to take over has come first.
_LOOKS = 2

#: Steps of one sweep: bounds how long their rows and those of their budgets are locked.
_ROWS = 1000

_SQL = {
    name: (Path(__file__).parent / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    for name in ("sweep_look", "sweep_lock", "book_unknown", "sweep")
}


class Sweep:
    """One a worker; those of an agent's workers pass over what another has in hand.

    Args:
        lease: seconds; as long is the pause between two looks.
    """

    def __init__(self, agent: str, lease: float) -> None:
        self._agent = agent
        self._lease = lease
        self._looks: deque[datetime] = deque([datetime.min.replace(tzinfo=UTC)] * _LOOKS, maxlen=_LOOKS)
        self._next = 0.0  #: time.monotonic

    @property
    def due(self) -> bool:
        """Whether it is time for a look."""
        return time.monotonic() >= self._next

    def run(self, connection: Connection[Any]) -> int:
        """Look, and settle what was left; how many steps. May be repeated when its answer was lost."""
        given = {"agent": self._agent, "ended": self._looks[0], "rows": _ROWS}
        now, left = connection.execute(_SQL["sweep_look"], given).fetchone() or (self._looks[-1], False)
        settled = self._settle(connection, given) if left else []
        for event_id, name, state in settled:
            log.warning("step_left agent=%s event=%s step=%s: it is %s now", self._agent, event_id, name, state)
        self._looks.append(now)
        self._next = time.monotonic() + self._lease
        return len(settled)

    def _settle(self, connection: Connection[Any], given: dict[str, Any]) -> list[Any]:
        """Event, name and new state of each step that was left. A call of a model costs what was reserved for it."""
        with connection.transaction():
            left = connection.execute(_SQL["sweep_lock"], given).fetchall()
            steps = [list(column) for column in zip(*left, strict=True)]
            if not steps:  # somebody else has them in hand
                return []
            connection.execute(_SQL["book_unknown"], steps)
            return connection.execute(_SQL["sweep"], steps).fetchall()
