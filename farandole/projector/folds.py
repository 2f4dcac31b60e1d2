"""Which projections are live, and how each is folded over the new events of a batch."""

from __future__ import annotations

import logging
from typing import Any

from farandole import postgres
from farandole.postgres import Connection, psycopg
from farandole.projections import CORE, Projection

log = logging.getLogger("farandole.projector")

#: A fold that takes longer is suspended: everything else waits for it.
SLOWEST = "60s"

_LEARN = """
SELECT name, hash, CASE WHEN fold IS NULL THEN 'unknown' ELSE 'live' END FROM projection WHERE error IS NULL
UNION ALL
SELECT name, hash, 'building' FROM projection_build WHERE state = 'building'
ORDER BY 1
"""
#: What an older version has folded is known by its hash alone.
_UNKNOWN = (
    "its SQL is not known: an older version folded it, and its folder is gone or has changed; put it back, or"
    " `farandole projections drop` it, and its tables by hand"
)
_BACKLOG = """
INSERT INTO projection_backlog (name, event_id)
SELECT name, event_id FROM new_events CROSS JOIN unnest(%s::text[]) AS name ORDER BY name, event_id
ON CONFLICT DO NOTHING
"""


class NotLive(Exception):
    """The core is not there (yet): nothing is folded without it."""


class Folds:
    """The folds of one connection; `learn` and `run` belong to a batch's transaction."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._known: dict[tuple[str, str], Projection] = {}
        self._live: list[Projection] = []
        self._building: list[str] = []

    def learn(self) -> None:
        """What is to be folded. Called under the offset locks: what changes it holds all of them.

        Raises NotLive without a core.
        """
        rows = self._connection.execute(_LEARN).fetchall()
        self._building = [name for name, _, state in rows if state == "building"]
        self._live = [self._projection(name, hash_) for name, hash_, state in rows if state == "live"]
        self._live.sort(key=lambda one: (one.name != CORE, one.name))
        if not self._live or self._live[0].name != CORE:
            raise NotLive(f"the projection {CORE} is not live")
        for name, hash_, state in rows:
            if state == "unknown":
                self._suspend(name, hash_, _UNKNOWN)

    def run(self) -> None:
        """Fold the rows of `new_events` into every live projection, the core first; builds are told their ids."""
        for projection in list(self._live):
            if projection.name == CORE:  # belongs to the transaction: what fails it is parked
                self._connection.execute(postgres.script(projection.fold), prepare=False)
            else:
                self._fold(projection)
        if self._building:
            self._connection.execute(_BACKLOG, (self._building,))

    def _projection(self, name: str, hash_: str) -> Projection:
        if (name, hash_) not in self._known:
            row = self._connection.execute(
                "SELECT name, NULL, tables, fold FROM projection WHERE name = %s", (name,)
            ).fetchone()
            if row is None:
                raise NotLive(f"the projection {name} is not live any more")
            self._known[name, hash_] = Projection(*row)
        return self._known[name, hash_]

    def _fold(self, projection: Projection) -> None:
        """Under a savepoint, in one round trip; a fold that fails is suspended and the others go on."""
        text = (
            f"SAVEPOINT fold; SET LOCAL statement_timeout = '{SLOWEST}';\n{projection.fold}\n;"
            "SET LOCAL statement_timeout = 0; RELEASE SAVEPOINT fold"
        )
        try:
            self._connection.execute(postgres.script(text), prepare=False)
        except psycopg.Error as error:
            if postgres.is_outage(error) and not _too_slow(error):
                raise
            self._connection.execute("ROLLBACK TO SAVEPOINT fold; RELEASE SAVEPOINT fold")
            reason = f"it took longer than {SLOWEST}" if _too_slow(error) else str(error.diag.message_primary or error)
            self._suspend(projection.name, projection.hash, reason)
            self._live = [one for one in self._live if one is not projection]

    def _suspend(self, name: str, hash_: str, reason: str) -> None:
        log.error("projection_suspended projection=%s: %s; see `farandole projections status`", name, reason)
        self._connection.execute(
            "UPDATE projection SET error = %s WHERE name = %s AND hash = %s", (reason, name, hash_)
        )


def _too_slow(error: psycopg.Error) -> bool:
    """Cancelled by the clock, not by a person."""
    return isinstance(error, psycopg.errors.QueryCanceled) and "timeout" in str(error.diag.message_primary)
