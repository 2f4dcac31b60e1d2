"""Partitions that a settled group has given to nobody: seen again and again, they make it share out anew.

Members that come back under their instance names are given what they had, without a rebalance. Where they died between the
two halves of a cooperative hand-over, what one had let go and the other had not yet been given stays with nobody, for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from farandole import asking, kafka
from farandole.kafka import KafkaException
from farandole.settings import Settings
from farandole.threads import in_thread

log = logging.getLogger("farandole.unheld")

#: Seconds between two looks.
_EVERY = 5.0

Places = frozenset[tuple[str, int]]


class Unheld:
    """Looks at the group of one worker now and then; `rejoin` is called when partitions have had nobody for two looks.

    Of several workers the one with the first instance name acts, the others a look later each, in case it is frozen.
    """

    def __init__(
        self, settings: Settings, group: str, topics: Sequence[str], instance: str, rejoin: Callable[[], object]
    ) -> None:
        self._settings = settings
        self._group = group
        self._topics = list(topics)
        self._instance = instance
        self._rejoin = rejoin

    async def watch(self) -> None:
        """Runs until it is cancelled."""
        seen: Places = frozenset()
        looks = 0
        while True:
            await asyncio.sleep(_EVERY)
            found, rank = await in_thread(self._look, f"unheld-{self._group}")
            looks = looks + 1 if found and found & seen else int(bool(found))
            seen = found
            if looks >= 2 + rank:
                names = ", ".join(f"{topic} [{partition}]" for topic, partition in sorted(found))
                log.warning(
                    "unheld %s: the group %s has given them to nobody; it is to share out anew", names, self._group
                )
                self._rejoin()
                looks = 0

    def _look(self) -> tuple[Places, int]:
        """What nobody holds though the group is settled, and our place among its members. Blocking, bounded."""
        try:
            found, members = asking.unheld(self._settings, self._group, self._topics)
        except KafkaException as failure:
            log.info("unheld_unknown group=%s: %s", self._group, kafka.error_of(failure).str())
            return frozenset(), 0
        return frozenset(found), sum(name < self._instance for name in members)  # an id begins with its instance
