"""Whether the group still has this projector: a client that has lost its coordinator for good does not say so."""

from __future__ import annotations

import logging
import time

from farandole import asking, kafka
from farandole.errors import Stopped
from farandole.kafka import KafkaException
from farandole.settings import Settings

log = logging.getLogger("farandole.projector")

#: Seconds between two looks.
_EVERY = 10.0

#: Looks without this projector among the members after which it ends, for a supervisor to start it anew.
_MOST = 4


class Outsider:
    """Looks now and then; blocking, bounded."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._group = settings.group("projector")
        self._next = time.monotonic() + _EVERY
        self._absent = 0

    def look(self, member: str) -> None:
        """Is `member`, the id that our client believes it has, one of the group's? Raises Stopped when it has long not been."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY
        try:
            _, members = asking.unheld(self._settings, self._group, ())
        except KafkaException as failure:
            log.info("members_unknown group=%s: %s", self._group, kafka.error_of(failure).str())
            return
        self._absent = 0 if member and member in members else self._absent + 1
        if self._absent >= _MOST:
            lasted = self._absent * _EVERY
            raise Stopped(f"the group {self._group} has been without this projector for {lasted:.0f} s; start it again")
