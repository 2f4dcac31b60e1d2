"""Which projections are live, and how each is folded over the new events of a batch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from farandole import postgres
from farandole.postgres import Connection, psycopg
from farandole.projections import CORE, Projection

log = logging.getLogger("farandole.projector")


class ProjectionChanged(Exception):
    """Another projector has installed another version of a projection; this one waits rather than folds the old way."""


class Folds:
    """The folds of one connection; `learn` and `run` belong to a batch's transaction."""

    def __init__(self, connection: Connection[Any], projections: Sequence[Projection]) -> None:
        self._connection = connection
        self._projections = projections
        self._live: list[Projection] = []

    def learn(self) -> None:
        """What is to be folded. Called under the offset locks: what changes it holds all of them."""
        rows = self._connection.execute("SELECT name, hash, suspended FROM projection").fetchall()
        known = {name: (hash_, suspended) for name, hash_, suspended in rows}
        for projection in self._projections:
            if known.get(projection.name, ("", None))[0] != projection.hash:
                raise ProjectionChanged(projection.name)
        self._live = [projection for projection in self._projections if known[projection.name][1] is None]

    def run(self) -> None:
        """Fold the rows of `new_events` into every live projection, the core first."""
        for projection in self._live:
            self._fold(projection)

    def _fold(self, projection: Projection) -> None:
        """The core fold belongs to the transaction; another one that fails is suspended and the rest go on."""
        if projection.name == CORE:
            self._connection.execute(postgres.script(projection.fold), prepare=False)
            return
        try:
            with self._connection.transaction():
                self._connection.execute(postgres.script(projection.fold), prepare=False)
        except psycopg.Error as error:
            if postgres.is_outage(error):
                raise
            reason = str(error.diag.message_primary or error)
            log.error("projection_suspended projection=%s: %s; see `farandole projections`", projection.name, reason)
            self._connection.execute("UPDATE projection SET suspended = %s WHERE name = %s", (reason, projection.name))
