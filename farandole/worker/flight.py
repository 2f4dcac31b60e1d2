"""Handlings under way: up to the agent's concurrency at once, in the order that the lanes allow."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from farandole.worker.holdings import Held, Item
from farandole.worker.lanes import Lane, Lanes

log = logging.getLogger("farandole.flight")

#: Seconds. Inline handlers never wait, so signals and the other agents of the process get their turn after this.
INLINE_TURN = 0.01

#: Seconds. A handler that has not noticed by then that it was cancelled does not want to.
_CANCELLED = 2.0


class Flight:
    """Runs `handle` for one item after another, on the event loop. Where it answers True, what waits behind the item in
    its lane is given to `put_behind`.

    `failure` is set when a handling says that the worker cannot go on.
    """

    def __init__(
        self, handle: Callable[[Item], Awaitable[bool]], concurrency: int, put_behind: Callable[[Item], object]
    ) -> None:
        self._handle = handle
        self._put_behind = put_behind
        self._concurrency = concurrency
        self._lanes: Lanes[Item] = Lanes()
        self._halted = False
        self._sources: set[Held] = set()
        self._tasks: dict[asyncio.Task[None], Item | None] = {}
        self._given_up: set[asyncio.Task[None]] = set()
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def running(self) -> int:
        """Handlings under way."""
        return len(self._tasks)

    @property
    def ready(self) -> int:
        """Records that could start now, were there room for them."""
        return self._lanes.ready

    @property
    def queued(self) -> int:
        """Records that wait, for room or for an earlier one of their key."""
        return self._lanes.queued

    def admit(self, items: Iterable[Item]) -> None:
        """Queue what has no outcome yet, and start as much as there is room for."""
        if self._halted:
            return
        for item in items:
            if item.outcome is None and not item.held.leaving:
                self._sources.add(item.held)
                self._lanes.add(item.held, item.record.key, item)
        self._start()

    async def run_inline(self, items: Iterable[Item]) -> None:
        """Handle the items of an inline agent one after the other, here and now."""
        turn = time.perf_counter()
        for item in items:
            if item.outcome is not None or item.held.leaving or self._halted:
                continue
            await self._handle(item)
            if time.perf_counter() - turn > INLINE_TURN:
                await asyncio.sleep(0)
                turn = time.perf_counter()

    def let_go(self) -> None:
        """Partitions have gone or are about to: nothing of them begins any more, what runs for lost ones is cancelled."""
        for held in [held for held in self._sources if held.leaving]:
            self._sources.remove(held)
            self._lanes.drop(held)
        for task, item in self._tasks.items():
            if item is not None and item.held.lost:
                self._give_up(task)

    def halt(self) -> None:
        """Begin nothing more; what runs goes on."""
        self._halted = True
        self._lanes = Lanes()

    async def drain(self, grace: float) -> None:
        """Begin nothing more; wait `grace` seconds for what runs, then give it up."""
        self.halt()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        left = list(self._tasks)
        if left:
            log.warning("abandoned %d handlings that did not end within the grace period", len(left))
            for task in left:
                self._give_up(task)
            if (await asyncio.wait(left, timeout=_CANCELLED))[1]:
                log.warning("handlings go on although they were cancelled; they are left behind")

    def abandoned(self, task: asyncio.Task[Any]) -> bool:
        """Whether the worker itself has cancelled what this task handles."""
        return task in self._given_up

    def _give_up(self, task: asyncio.Task[None]) -> None:
        self._given_up.add(task)
        task.cancel()

    def _start(self) -> None:
        while len(self._tasks) < self._concurrency and (lane := self._lanes.start()):
            task = asyncio.create_task(self._run(lane))
            self._tasks[task] = lane.items[0]
            task.add_done_callback(self._ended)

    async def _run(self, lane: Lane[Item] | None) -> None:
        """One lane's item after another's, as their turns come: a task costs more than a turn."""
        task = asyncio.current_task()
        lanes = self._lanes
        while lane is not None and task is not None:
            item = self._tasks[task] = lane.items[0]
            item.held.running += 1
            try:
                if not item.held.leaving and await self._handle(item):
                    for later in lanes.cut(lane):
                        self._put_behind(later)
            finally:
                self._tasks[task] = None
                lanes.done(lane)
                item.held.running -= 1
            self._given_up.discard(task)
            if task.cancelling():  # its handler was cancelled, by us or by itself, and ended all the same
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)  # where it would be delivered, to the next handler
                while task.cancelling():
                    task.uncancel()
            lane = lanes.start() if lanes is self._lanes else None

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._given_up.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure and not self.failure.done():
            self.failure.set_exception(failure)
        self._start()
