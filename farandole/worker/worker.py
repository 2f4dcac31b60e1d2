"""The core: one agent's events, from the log through its handler and back to the log, without a pause between the steps."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from farandole.agent import Wiring
from farandole.handling import Handling
from farandole.outage import Outage
from farandole.outcome import DeadLettered, Skipped
from farandole.schema_log import SchemaLog
from farandole.settings import Settings
from farandole.worker.decoding import Decoding
from farandole.worker.flight import Flight
from farandole.worker.holdings import Holdings, Item
from farandole.worker.intake import Intake
from farandole.worker.ledger import Ledger
from farandole.worker.outputs import Outputs
from farandole.worker.settle import Settlement

log = logging.getLogger("farandole.worker")

T = TypeVar("T")

#: Records taken and not yet committed, at most: what a long outage of the broker, or one hanging key, can pile up.
MOST_IN_HAND = 10_000


class Worker:
    """Runs one agent until asked to stop. Opened and closed by `run`; used once.

    Records go through `_prepare` (taken, decoded, claimed), the handler, and `_settle` (committed with their outputs). The
    three run side by side: while one commit is under way, others are handled and prepared. A crash anywhere repeats work;
    it never loses or doubles it: only a commit leaves anything behind, and that in one transaction.
    """

    def __init__(self, settings: Settings, wiring: Wiring, stop: asyncio.Event) -> None:
        self.settings = settings
        self.wiring = wiring
        self.agent = wiring.agent
        self.stop = stop
        self.counts: Counter[str] = Counter()  #: outcomes that were committed, by name
        self.ledger = Ledger(settings, self.agent.name, self.outage)
        self.decoding = Decoding(settings, wiring, SchemaLog(settings), self.outage)
        # One thread for the ledger and one for commits: neither waits for the other, and each needs no lock of its own.
        self.claiming = ThreadPoolExecutor(1, thread_name_prefix=f"claim-{self.agent.name}")
        self.settling = ThreadPoolExecutor(1, thread_name_prefix=f"settle-{self.agent.name}")
        self.came = asyncio.Event()  #: something to take, or room for it
        self.done = asyncio.Event()  #: something to commit

    async def run(self) -> None:
        """Work until asked to stop, or until something fails; then drain. Raises the first failure."""
        async with AsyncExitStack() as stack:
            await self.open(stack)
            stopping = asyncio.ensure_future(self.stop.wait())
            tasks = [asyncio.ensure_future(task) for task in self.tasks()]
            first: list[asyncio.Future[Any]] = [stopping, self.flight.failure, *tasks]
            try:
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (stopping, *tasks):
                    task.cancel()
                await asyncio.wait(first[:1] + first[2:])
                await self.drain()
            for ended in first:
                if ended.done() and not ended.cancelled():
                    ended.result()

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """What runs beside each other until one of them ends, which is a failure."""
        return [self._work(), self._settle()]

    async def open(self, stack: AsyncExitStack) -> None:
        """Take a slot, the resource and the transactional id, in that order; given back in the opposite one."""
        stack.callback(self.settling.shutdown)
        stack.callback(self.claiming.shutdown)
        stack.callback(self.ledger.close)
        slot = await self.blocking(self.ledger.open)
        resource = await stack.enter_async_context(self.agent.resource(self.settings)) if self.agent.resource else None
        handling = Handling(self.wiring, resource, outage=self.outage)
        self.flight = Flight(handling, self.agent.concurrency, self.finished)
        settings, group = self.settings, self.settings.group(self.agent.name)
        topics = [settings.topic(topic) for topic in (self.wiring.topic, self.agent.wake_topic)]
        identity = f"{group}.{slot}"
        self.holdings = Holdings(identity, self.ledger.owner)
        loop = asyncio.get_running_loop()
        self.intake = Intake(
            settings, topics, group, identity, self.holdings, lambda: loop.call_soon_threadsafe(self.look)
        )
        stack.push_async_callback(asyncio.to_thread, self.intake.close)
        outputs = Outputs(settings, self.wiring)
        self.settlement = Settlement(settings, self.intake, self.holdings, outputs, identity, group)
        await self._settling(self.settlement.open, self.outage())
        self.intake.start()
        log.info("ready agent=%s group=%s slot=%d topic=%s", self.agent.name, group, slot, topics[0])

    def look(self) -> None:
        """The Kafka thread has something to tell: records, partitions, or its failure."""
        self.flight.let_go()
        self.came.set()
        if self.holdings.to_commit:
            self.done.set()

    def outage(self) -> Outage:
        """For one piece of work that an outage may hold up."""
        settings = self.settings
        return Outage(f"agent {self.agent.name}", settings.outage_seconds, self.stop.is_set, settings.grace_seconds)

    async def _work(self) -> None:
        """Prepare the next records while the last ones are handled."""
        ahead = asyncio.ensure_future(self._prepare())
        try:
            while True:
                items = await ahead
                ahead = asyncio.ensure_future(self._prepare())
                settled = [item for item in items if item.outcome is not None]
                if settled:
                    self.commit(settled)
                if self.agent.inline:
                    await self.flight.run_inline(items)
                else:
                    self.flight.admit(items)
        finally:
            ahead.cancel()

    async def _prepare(self) -> list[Item]:
        """The next records, decoded and claimed; waits until there are some, and room for them."""
        while True:
            self.came.clear()
            if self.intake.membership.failure:
                raise self.intake.membership.failure
            if self._has_room():
                items = self.holdings.take(self.settings.batch)
                self.intake.taken()
                if items:
                    await self.decoding.decode(items)
                    await self.claim([item for item in items if item.outcome is None])
                    return items
                if self.holdings.to_commit:
                    self.done.set()
            await self.came.wait()

    def _has_room(self) -> bool:
        """Enough lies ready for the handlers to choose from, and no more."""
        ready = self.agent.concurrency + max(self.agent.concurrency, self.settings.batch)
        return self.flight.ready < ready and self.holdings.in_hand < max(MOST_IN_HAND, 4 * self.agent.concurrency)

    async def claim(self, items: list[Item]) -> None:
        """Mark the events that were claimed from other records as duplicates."""
        if self.settings.claims and items:
            await self.blocking(self.ledger.claim, items)

    def finished(self, item: Item) -> None:
        """A handling has ended with an outcome."""
        self.commit([item])
        self.came.set()

    def commit(self, items: list[Item]) -> None:
        """Have these committed as soon as may be."""
        self.holdings.finish(items)
        self.done.set()

    async def _settle(self) -> None:
        """One transaction after another, each with all that was finished meanwhile: one event is committed at once, many
        make bigger transactions."""
        while True:
            await self.done.wait()
            self.done.clear()
            await self._settle_once()

    async def _settle_once(self) -> None:
        while self.holdings.to_commit:
            under_way = self._settling(self.settlement.settle, self.outage())
            try:
                settled = await asyncio.shield(under_way)
            except asyncio.CancelledError:
                self.report(await under_way)  # it runs to its end even when the worker is cancelled
                raise
            self.report(settled)
            self.came.set()
            if not settled:
                return

    async def drain(self) -> None:
        """Let what runs end, within the grace period, and commit all that is finished."""
        await self.flight.drain(self.settings.grace_seconds)
        await self._settle_once()

    def report(self, items: list[Item]) -> None:
        """Count and log what was committed."""
        for item in items:
            outcome = item.outcome
            self.counts[outcome.why if isinstance(outcome, Skipped) else type(outcome).__name__] += 1
            if isinstance(outcome, DeadLettered):
                record = item.record
                log.warning(
                    "dead_lettered agent=%s cause=%s topic=%s partition=%d offset=%d attempts=%d: %s",
                    self.agent.name,
                    outcome.cause,
                    record.topic,
                    record.partition,
                    record.offset,
                    outcome.attempts,
                    outcome.error,
                )
        log.debug("settled agent=%s records=%d", self.agent.name, len(items))

    def blocking(self, call: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Run a blocking call on the ledger's thread."""
        return asyncio.get_running_loop().run_in_executor(self.claiming, call, *arguments)

    def _settling(self, call: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self.settling, call, *arguments)
