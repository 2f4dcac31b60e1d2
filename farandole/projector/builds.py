"""Builds projections in the background of a projector: one of all projectors of a namespace is at it."""

from __future__ import annotations

import logging
from typing import Any

from farandole.chore import Chore
from farandole.postgres import Connection
from farandole.projections.building import Builder
from farandole.settings import Settings

log = logging.getLogger("farandole.projector")

#: Seconds between two looks at what is wanted, and between two tries while the database is away.
LOOK, AGAIN = 1.0, 5.0


class Builds(Chore):
    """Builds what is wanted, whenever no other projector does."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, "builds", LOOK, AGAIN, log)

    def work(self, connection: Connection[Any]) -> None:
        """All that is wanted now, one after the other."""
        builder = Builder(self.settings, connection, said, self.pause)
        if builder.next() is None:
            return  # without the lock, which others want: nothing is forgotten while it is held
        with builder.alone() as mine:
            while mine and builder.build_next():
                pass


def said(name: str, what: str) -> None:
    """Progress of a build, in the log."""
    level = logging.ERROR if what.startswith("failed") else logging.INFO
    log.log(level, "projection projection=%s %s", name, what)
