"""Between the handlers and the table `wait`: what is to be put off, and which waits are over, a batch at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from farandole.outcome import Outcome, Suspended
from farandole.worker.ahead import Ahead
from farandole.worker.holdings import Item
from farandole.worker.holds import Holds
from farandole.worker.ledger import Ledger, SlotLost
from farandole.worker.waits import Waits, ended, put_behind

#: Items in one transaction at most.
_MOST = 1000

#: Seconds. What is due sooner may be due before the sweeper looks by itself.
_SOON = 1.0

Blocking = Callable[..., "asyncio.Future[Any]"]


class Deferral:
    """Lives on the event loop; its statements run on the ledger's thread, in turn with the claims.

    That order matters: a claim that follows a suspension sees it, so a record that goes away and comes back is not handled
    beside its own wait.

    Args:
        blocking: runs a call on the ledger's thread.
        commit: called with items whose offsets may be committed now.
        nudge: called when something may be due sooner than the sweeper thinks.
    """

    def __init__(
        self,
        waits: Waits,
        ledger: Ledger,
        blocking: Blocking,
        commit: Callable[[list[Item]], object],
        nudge: Callable[[], object],
    ) -> None:
        self.holds = Holds()
        self._ahead = Ahead(waits.lane)
        self._waits = waits
        self._ledger = ledger
        self._blocking = blocking
        self._commit = commit
        self._nudge = nudge
        self._suspended: list[Item] = []
        self._over: list[Item] = []
        self._came = asyncio.Event()

    def put_off(self, items: Sequence[Item]) -> None:
        """These ended as `Suspended`. They are committed once that is durable; with order="hold" their keys are held, and what
        of their keys is finished is committed first."""
        for item in items:
            self.holds.hold(self._waits.lane(item))
        self._take(self._ahead.put_off(items))

    def finished(self, items: Iterable[Item]) -> None:
        """These are about to be committed."""
        self._ahead.finished(items)

    def settled(self, items: Sequence[Item]) -> None:
        """These were committed: the waits of those that came by a wake are over."""
        over = ended(items)
        self._over += over
        if over:
            self._came.set()
        self._take(self._ahead.settled(items))

    def _take(self, items: list[Item]) -> None:
        self._suspended += items
        if items:
            self._came.set()

    def hold_back(self, items: Iterable[Item]) -> None:
        """End what must wait of items that are about to be handed over."""
        for item in items:
            if item.outcome is None:
                self.put_behind(item)

    def put_behind(self, item: Item) -> bool:
        """End an item that must wait behind an earlier one of its key, which is being put off; whether it must. A wake has a
        row of its own, at which `claimed` has looked."""
        if item.wake is not None or self._waits.lane(item) not in self.holds:
            return False
        item.outcome = put_behind(item)
        return True

    def holds_lane(self, item: Item) -> bool:
        """Whether what waits in the lane of an item that has ended must be put off behind it."""
        return isinstance(item.outcome, Suspended) and item.wake is None and self._waits.lane(item) is not None

    async def claimed(self, items: Sequence[Item]) -> None:
        """Of items that were claimed, those that stand behind an earlier event of their key end at once: put them off."""
        if self._waits.holds and items:
            found = await self._blocking(self._ledger.run, lambda connection: self._waits.behind(connection, items))
            for item in found:
                item.outcome = put_behind(item)

    async def run(self) -> None:
        """Put off and settle as it comes; ends only with a failure."""
        while True:
            await self._came.wait()
            self._came.clear()
            await self.flush()

    async def flush(self) -> None:
        """Put off and settle all that has come so far."""
        while self._suspended or self._over:
            over, self._over = self._over[:_MOST], self._over[_MOST:]
            items, self._suspended = self._suspended[:_MOST], self._suspended[_MOST:]
            under_way = asyncio.ensure_future(self._write(over, items))
            try:
                await asyncio.shield(under_way)
            except asyncio.CancelledError:
                await under_way  # it runs to its end even when the worker is cancelled
                raise

    async def _write(self, over: list[Item], items: list[Item]) -> None:
        if over:
            await self._blocking(self._ledger.run, lambda connection: self._waits.settle(connection, over))
        live = [item for item in items if not item.held.lost]
        refused: list[tuple[Item, Outcome | None]] = []
        if live:
            owner = self._ledger.owner
            refused = await self._blocking(
                self._ledger.run, lambda connection: self._waits.suspend(connection, live, owner)
            )
        self.holds.put_off(self._waits.lane(item) for item in items)
        if (over and self._waits.holds) or any(_soon(item) for item in live):
            self._nudge()
        not_put_off = {id(item): outcome for item, outcome in refused}
        for item, outcome in refused:
            if outcome is not None:
                item.outcome = outcome
            elif (
                not item.held.lost
            ):  # we do not know yet that the partition is another's; or the database forgot our claim
                where = f"{item.held.topic} [{item.held.partition}] {item.offset}"
                raise SlotLost(f"the claim of {where} is another worker's")
        self._commit([item for item in live if not_put_off.get(id(item), item.outcome) is not None])


def _soon(item: Item) -> bool:
    return isinstance(item.outcome, Suspended) and item.outcome.after < _SOON
