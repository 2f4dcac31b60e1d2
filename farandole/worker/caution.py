"""One worker's part in finding records that kill: takes the lifelines of its partitions, handles alone what is suspect."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from farandole import postgres
from farandole.outcome import Outcome
from farandole.worker.holdings import Held, Item
from farandole.worker.isolation import Isolation
from farandole.worker.lifelines import Lifelines, Place, killed

log = logging.getLogger("farandole.caution")

T = TypeVar("T")
Work = Callable[[postgres.Connection[Any]], T]


class Caution:
    """Used on the event loop. Every handling of the process goes through `handle`, or it may be blamed on a bystander.

    Args:
        bare: takes the namespace off a topic.
        run: runs work on the ledger's connection, sitting out outages.
        isolation: shared by all agents of the process.
    """

    def __init__(
        self,
        lifelines: Lifelines,
        isolation: Isolation,
        bare: Callable[[str], str],
        run: Callable[[Work[Any]], Awaitable[Any]],
    ) -> None:
        self._lifelines = lifelines
        self._isolation = isolation
        self._bare = bare
        self._run = run
        self._until: dict[Held, int] = {}  # met in this assignment; records before that offset are suspect
        self._waiting: dict[Item, asyncio.Future[None]] = {}  # handled alone, for their commit
        self._releases: set[asyncio.Future[Any]] = set()
        self._leaving = False

    async def meet(self, items: Iterable[Item]) -> None:
        """Before `items` are handled: take the lifelines of partitions that are met for the first time."""
        fresh = {self._place(item.held): item.held for item in items if item.held not in self._until}
        if not fresh:
            return
        positions = {place: max(0, held.committed[0]) for place, held in fresh.items()}
        # Known before they are taken: a drain that falls between lets go of them as well.
        self._until |= dict.fromkeys(fresh.values(), 0)
        taken = await self._run(lambda connection: self._lifelines.take(connection, positions))
        for place, held in fresh.items():
            line = taken[place]
            if held not in self._until:  # it has left meanwhile
                self._release([place])
                continue
            self._until[held] = line.until or 0
            if line.until:
                log.warning(
                    "alone topic=%s partition=%d from=%d until=%d deaths=%d: workers died without getting on; each record "
                    "is handled while nothing else is",
                    *place,
                    line.position,
                    line.until,
                    line.deaths,
                )

    async def handle(
        self, item: Item, handle: Callable[[], Awaitable[Outcome]], finished: Callable[[Item], None]
    ) -> None:
        """Set the outcome of `item` and tell `finished`; alone, and up to its commit, when it is suspect."""
        if item.offset < self._until.get(item.held, 0):
            await self._alone(item, handle, finished)
            return
        async with self._isolation.together():
            item.outcome = await handle()
        finished(item)

    async def _alone(
        self, item: Item, handle: Callable[[], Awaitable[Outcome]], finished: Callable[[Item], None]
    ) -> None:
        place, offset = self._place(item.held), item.offset
        async with self._isolation.alone():
            if item.held.leaving:
                return
            kills = await self._run(lambda connection: self._lifelines.alone(connection, *place, offset))
            if kills is None:
                return  # another worker has the partition; the group will tell
            item.outcome = killed(kills) or await handle()
            committed = self._waiting[item] = asyncio.get_running_loop().create_future()
            try:
                finished(item)
                if self._leaving:
                    return
                await committed
            finally:
                del self._waiting[item]
            if not item.held.lost and not self._leaving:
                await self._run(lambda connection: self._lifelines.done(connection, *place, offset))

    def committed(self, items: Iterable[Item]) -> None:
        """These are committed."""
        if self._waiting:
            for item in items:
                _wake(self._waiting.get(item))

    def look(self) -> None:
        """Partitions may be about to go, or gone: what is known of them is let go."""
        for item, waiting in self._waiting.items():
            if item.held.lost:
                _wake(waiting)
        gone = [] if self._leaving else [held for held in self._until if held.leaving]
        if gone:  # while it drains `close` sees to all of them: the ledger may be closed after that
            for held in gone:
                del self._until[held]
            self._release([self._place(held) for held in gone])

    def leave(self) -> None:
        """The worker drains: commits come later, and nobody waits for them."""
        self._leaving = True
        for waiting in self._waiting.values():
            _wake(waiting)

    async def close(self) -> None:
        """Let go of everything: the worker ends in good order, whatever it abandons."""
        if self._releases:
            await asyncio.wait(self._releases)
        places = [self._place(held) for held in self._until]
        if places:
            await self._run(lambda connection: self._lifelines.let_go(connection, places))

    def _release(self, places: list[Place]) -> None:
        release = asyncio.ensure_future(self._run(lambda connection: self._lifelines.let_go(connection, places)))
        self._releases.add(release)
        release.add_done_callback(self._released)

    def _released(self, release: asyncio.Future[Any]) -> None:
        self._releases.discard(release)
        if not release.cancelled() and (failure := release.exception()):
            log.warning("partitions were not let go, and will look as if their worker had died: %s", failure)

    def _place(self, held: Held) -> Place:
        return self._bare(held.topic), held.partition


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting and not waiting.done():
        waiting.set_result(None)
