"""Commits that follow each other: each takes all that was finished during the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from farandole.worker.holdings import Holdings, Item


class Committing:
    """One event commits at once, many make bigger transactions. Lives on the event loop.

    Args:
        settle: starts one commit in a thread of its own; its items, [] when there was nothing to commit.
        settled: called with the items of each commit.
    """

    def __init__(
        self,
        holdings: Holdings,
        settle: Callable[[], asyncio.Future[list[Item]]],
        settled: Callable[[list[Item]], object],
    ) -> None:
        self._holdings = holdings
        self._settle = settle
        self._settled = settled
        self._due = asyncio.Event()

    def commit(self, items: list[Item]) -> None:
        """Have these committed as soon as may be."""
        self._holdings.finish(items)
        self._due.set()

    def look(self) -> None:
        """Positions may have moved, past markers or what was finished before."""
        if self._holdings.to_commit:
            self._due.set()

    async def run(self) -> None:
        """Commit as it comes; ends only with a failure."""
        while True:
            await self._due.wait()
            self._due.clear()
            await self.flush()

    async def flush(self) -> None:
        """Commit all that is finished."""
        while self._holdings.to_commit:
            under_way = self._settle()
            try:
                settled = await asyncio.shield(under_way)
            except asyncio.CancelledError:
                self._settled(await under_way)  # it runs to its end even when the worker is cancelled
                raise
            self._settled(settled)
            if not settled:
                return
