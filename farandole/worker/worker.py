"""The core: one agent's events, from the log through its handler and back to the log, without a pause between the steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, TypeVar

from farandole.agent import Wiring
from farandole.contracts.lookup import Schemas
from farandole.envelope import Envelope
from farandole.handling import Handling
from farandole.outage import Outage
from farandole.outcome import Suspended
from farandole.settings import Settings
from farandole.worker.caution import Caution
from farandole.worker.committing import Committing
from farandole.worker.conduct import Conduct
from farandole.worker.decoding import Decoding
from farandole.worker.deferral import Deferral
from farandole.worker.ending import end, failure_of
from farandole.worker.flight import Flight
from farandole.worker.holdings import Holdings, Item
from farandole.worker.intake import Intake
from farandole.worker.isolation import Isolation
from farandole.worker.known import Positions
from farandole.worker.ledger import Ledger, SlotLost
from farandole.worker.lifelines import Lifelines
from farandole.worker.outputs import Outputs
from farandole.worker.settle import Settlement
from farandole.worker.sweeper import Sweeper
from farandole.worker.unheld import Unheld
from farandole.worker.vitals import Vitals
from farandole.worker.waits import Waits, put_behind

T = TypeVar("T")

#: Records decoded and claimed together, at most: handlers and signals wait meanwhile.
MOST_AT_A_TIME = 500


class Worker:
    """Runs one agent until asked to stop. Made by `worker.opened`; used once.

    Records go through `_prepare` (taken, decoded, claimed), `handle`, and `Committing` (committed with their outputs). The
    three run side by side: while one commit is under way, others are handled and prepared. A crash anywhere repeats work;
    it never loses or doubles it: only a commit leaves anything behind, and that in one transaction.

    Args:
        isolation: shared by all workers of the process.
    """

    def __init__(self, settings: Settings, wiring: Wiring, stop: asyncio.Event, isolation: Isolation) -> None:
        self.settings = settings
        self.wiring = wiring
        self.agent = agent = wiring.agent
        self.stop = stop
        self.isolation = isolation
        self.leaving = False  #: it ends, asked to or not: outages are sat out no longer than the grace period
        # One thread for the ledger and one for commits: neither waits for the other, and each needs no lock of its own.
        self.claiming = ThreadPoolExecutor(1, thread_name_prefix=f"claim-{agent.name}")
        self.settling = ThreadPoolExecutor(1, thread_name_prefix=f"settle-{agent.name}")
        self.came = asyncio.Event()  #: something to take, or room for it
        self.ready = agent.concurrency + max(agent.concurrency, settings.batch)  #: records to choose from
        self.ledger = Ledger(settings, agent.name, self.outage)
        self.outputs = Outputs(settings, wiring)
        self.decoding = Decoding(settings, wiring, Schemas(settings), self.outage)
        self.flight = Flight(self.handle, agent.concurrency, self.put_behind)
        self.conduct = Conduct(agent.name, agent.brake, self.flight.halt)
        self.waits = Waits(settings, agent)
        self.sweeper = Sweeper(settings, agent, self.waits, self.outage)
        self.positions = Positions(settings, agent.name, self.outage)

    async def open(self, stack: AsyncExitStack, handling: Handling) -> None:
        """Join the group under the slot that the ledger has taken; left again at the end of `stack`."""
        self.handling = handling
        settings, group = self.settings, self.settings.group(self.agent.name)
        topics = [settings.topic(topic) for topic in (self.wiring.topic, self.agent.wake_topic)]
        identity = f"{group}.{self.ledger.slot}"
        self.holdings = Holdings(identity, self.ledger.owner, settings.batch)
        loop = asyncio.get_running_loop()
        notify = partial(loop.call_soon_threadsafe, self.look)
        self.intake = Intake(settings, topics, group, identity, self.holdings, self.positions, notify)
        self.unheld = Unheld(settings, group, topics, identity, self.intake.membership.rejoin.set)
        ahead = settings.batch if self.agent.inline else self.agent.concurrency
        lifelines = Lifelines(self.agent.name, self.ledger.owner, ahead, self.isolation.living)
        self.caution = Caution(lifelines, self.isolation, settings.bare, partial(self.blocking, self.ledger.run))
        stack.push_async_callback(asyncio.to_thread, self.intake.close)
        written = self.outputs.topics
        self.settlement = Settlement(settings, self.intake, self.holdings, written, self.ledger, group)
        self.committing = Committing(self.holdings, lambda: self.in_settling(self.settlement.settle), self.settled)
        commit, nudge = self.committing.commit, self.sweeper.nudge
        self.deferral = Deferral(self.waits, self.ledger, self.blocking, commit, nudge)
        await self.in_settling(self.settlement.open)
        self.intake.start()

    async def run(self) -> None:
        """Work until asked to stop, or until something fails; then drain. Raises the first failure."""
        stopping = asyncio.ensure_future(self.stop.wait())
        writing = [asyncio.ensure_future(task) for task in (self.committing.run(), self.deferral.run())]
        others = [asyncio.ensure_future(task) for task in self.tasks()]
        watched: list[asyncio.Future[Any]] = [self.flight.failure, *writing, *others]
        failure: BaseException | None = None
        try:
            await asyncio.wait([stopping, *watched], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.leaving = True
            await end([stopping, *others])
            failure = failure_of(watched)
            if not failure:  # what ends is committed meanwhile, not at the end of the slowest
                self.caution.leave()
                await self.flight.drain(self.settings.grace_seconds)
            await end(writing)
            failure = failure_of(watched)
            await self.drain(lost=isinstance(failure, SlotLost))
        if failure:
            raise failure
        self.conduct.answer()

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """What runs beside each other until one of them ends, which is a failure."""
        return [
            self._work(),
            self.sweeper.run(self.stop),
            self.positions.watch(),
            self.unheld.watch(),
            self.conduct.remind(),
        ]

    def look(self) -> None:
        """The Kafka thread has something to tell: records, partitions, or its failure."""
        self.flight.let_go()
        self.caution.look()
        self.came.set()
        self.committing.look()

    def outage(self) -> Outage:
        """For one piece of work that an outage may hold up."""
        limits = self.settings.outage_seconds, lambda: self.leaving or self.stop.is_set(), self.settings.grace_seconds
        return Outage(f"agent {self.agent.name}", *limits, tell=self.conduct.signs.outage)

    def vitals(self) -> Vitals:
        """How it is now."""
        return self.conduct.vitals(self.flight, self.holdings, draining=self.stop.is_set())

    async def _work(self) -> None:
        """Prepare the next records while the last ones are handled."""
        ahead = asyncio.ensure_future(self._prepare())
        try:
            while True:
                items = await ahead
                ahead = asyncio.ensure_future(self._prepare())
                # Now, while their keys are held: later, in their lanes, nobody would know any more.
                self.deferral.hold_back(items)
                self.finish([item for item in items if item.outcome is not None])
                if self.agent.inline:
                    await self.flight.run_inline(items)
                else:
                    self.flight.admit(items)
                self.deferral.holds.handed_over()
        finally:
            ahead.cancel()

    async def _prepare(self) -> list[Item]:
        """The next records, decoded and claimed; waits until there are some, and room for them."""
        while True:
            self.came.clear()
            if self.intake.membership.failure:
                raise self.intake.membership.failure
            if self._has_room():
                items = self.holdings.take(min(self.settings.batch, MOST_AT_A_TIME))
                self.intake.taken()
                if items:
                    await self.decoding.decode(items)
                    self.deferral.holds.claiming()
                    await self.claim([item for item in items if item.outcome is None])
                    return items
                self.committing.look()
            await self.came.wait()

    def _has_room(self) -> bool:
        """Enough lies ready for the handlers to choose from, and no more; nothing is taken with the brake on."""
        return self.flight.ready < self.ready and not self.conduct.braked

    async def claim(self, items: list[Item]) -> None:
        """Give an outcome to what is not to be handled: claimed from another record, or behind an earlier event."""
        if self.settings.claims and items:
            await self.blocking(self.ledger.claim, items)
        fresh = [item for item in items if item.outcome is None]
        await self.deferral.claimed(fresh)
        await self.caution.meet(fresh)

    async def handle(self, item: Item) -> bool:
        """Have the handler's outcome for `item`; whether what waits behind it in its lane is to be put off as well."""
        if self.deferral.put_behind(item):
            self.finished(item)
        else:
            (payload, fields), wake = item.event(), item.wake
            attempts, error = (wake.attempts, wake.error) if wake else (0, "")
            attempt = partial(self.handling.run, payload, Envelope(fields), attempts, error)
            await self.caution.handle(item, attempt, self.finished)
        return self.deferral.holds_lane(item)

    def put_behind(self, item: Item) -> None:
        """End `item`, which waits in the lane of one that was put off."""
        item.outcome = put_behind(item)
        self.finished(item)

    def finished(self, item: Item) -> None:
        """A handling has ended with an outcome."""
        self.finish([item])
        self.came.set()

    def finish(self, items: list[Item]) -> None:
        """Commit what has ended; what is put off, only once that is durable."""
        for item in items:
            item.outputs = self.outputs.of(item)  # what cannot be written becomes a dead letter
        self.conduct.ended(items)
        self.deferral.put_off([item for item in items if isinstance(item.outcome, Suspended)])
        if ended := [item for item in items if not isinstance(item.outcome, Suspended)]:
            self.deferral.finished(ended)
            self.committing.commit(ended)

    def settled(self, items: list[Item]) -> None:
        """These were committed."""
        self.deferral.settled(items)
        self.caution.committed(items)
        self.conduct.settled(items)
        self.came.set()

    async def drain(self, lost: bool) -> None:
        """Let what runs end, within the grace period, and commit all that is finished; nothing is, where all is `lost`."""
        self.caution.leave()
        await self.flight.drain(0 if lost else self.settings.grace_seconds)
        if not lost:
            await self.deferral.flush()
            await self.committing.flush()
            await self.deferral.flush()
            await self.caution.close()

    def blocking(self, call: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Run a blocking call on the ledger's thread."""
        return asyncio.get_running_loop().run_in_executor(self.claiming, call, *arguments)

    def in_settling(self, call: Callable[[Outage], T]) -> asyncio.Future[T]:
        """Run a blocking call on the settling thread."""
        return asyncio.get_running_loop().run_in_executor(self.settling, call, self.outage())
