"""The core loop: one agent's events, from the log through its handler and back to the log."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from farandole.agent import Wiring
from farandole.errors import Stopped
from farandole.handling import Handling
from farandole.outage import Outage
from farandole.outcome import DeadLettered, Skipped
from farandole.schema_log import SchemaLog
from farandole.settings import Settings
from farandole.worker.batch import Batch, Plan
from farandole.worker.decoding import Decoding
from farandole.worker.intake import Intake
from farandole.worker.lanes import run_lanes
from farandole.worker.ledger import Ledger
from farandole.worker.outputs import Outputs
from farandole.worker.settle import Settlement

log = logging.getLogger("farandole.worker")

T = TypeVar("T")


class Worker:
    """Runs one agent until asked to stop. Opened and closed by `run`; used once."""

    def __init__(self, settings: Settings, wiring: Wiring, stop: asyncio.Event) -> None:
        self.settings = settings
        self.wiring = wiring
        self.agent = wiring.agent
        self.stop = stop
        self.counts: Counter[str] = Counter()  #: outcomes that were settled, by name
        self.ledger = Ledger(settings, self.agent.name, self.outage)
        self.decoding = Decoding(settings, wiring, SchemaLog(settings), self.outage)
        # Claims and commits are blocking calls of one thread each worker: they never overlap, so neither needs a lock.
        self.settling = ThreadPoolExecutor(1, thread_name_prefix=f"settle-{self.agent.name}")

    async def run(self) -> None:
        """Take, decode, claim, handle, settle, until asked to stop. A crash anywhere repeats work; it never loses or doubles
        it: only `settle` leaves anything behind, and that in one transaction."""
        async with AsyncExitStack() as stack:
            await self.open(stack)
            async for batch in self.intake.batches(self.stop):
                try:
                    await self.decoding.decode(batch)
                    await self.claim(batch)
                    await self.handle(batch)
                finally:  # what is finished is settled even when the rest is given up
                    self.report(batch, await self.settle(batch))

    async def open(self, stack: AsyncExitStack) -> None:
        """Take a slot, the resource and the transactional id, in that order; given back in the opposite one."""
        stack.callback(self.settling.shutdown)
        stack.callback(self.ledger.close)
        slot = await self._blocking(self.ledger.open)
        resource = await stack.enter_async_context(self.agent.resource(self.settings)) if self.agent.resource else None
        self.handling = Handling(self.wiring, resource, outage=self.outage)
        group, topic = self.settings.group(self.agent.name), self.settings.topic(self.wiring.topic)
        self.intake = Intake(self.settings, topic, group, f"{group}.{slot}", most=self.most())
        stack.push_async_callback(asyncio.to_thread, self.intake.close)
        outputs = Outputs(self.settings, self.wiring)
        self.settlement = Settlement(self.settings, self.intake.membership, outputs, group, slot, self.outage)
        await self._blocking(self.settlement.open)
        log.info("ready agent=%s group=%s slot=%d topic=%s", self.agent.name, group, slot, topic)

    def most(self) -> int:
        """Records a batch holds at most. A batch is committed as a whole, so of events that take their time it holds no
        more than are handled at once."""
        return self.settings.batch if self.agent.inline else min(self.settings.batch, self.agent.concurrency)

    def outage(self) -> Outage:
        """For one piece of work that an outage may hold up."""
        settings = self.settings
        return Outage(f"agent {self.agent.name}", settings.outage_seconds, self.stop.is_set, settings.grace_seconds)

    async def claim(self, batch: Batch) -> None:
        """Mark the events that were claimed from other records as duplicates."""
        items = list(batch.open())
        if self.settings.claims and items:
            await self._blocking(self.ledger.claim, items)

    async def handle(self, batch: Batch) -> None:
        """Run the handler on what is left. A stop leaves it the grace period, then gives up what is not finished."""
        handling = asyncio.ensure_future(run_lanes(batch.open(), self.handling, self.agent.concurrency))
        stopping = asyncio.ensure_future(self._grace_is_over())
        try:
            await asyncio.wait([handling, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not handling.done():
                log.warning("abandoned agent=%s unfinished=%d", self.agent.name, sum(1 for _ in batch.open()))
                handling.cancel()
            await asyncio.wait([handling])
        if not handling.cancelled():
            handling.result()
        if not self.stop.is_set() and any(batch.open()):
            # Whatever the cause: the next batch would be committed past these.
            raise Stopped(f"agent {self.agent.name}: events were left unhandled")

    async def settle(self, batch: Batch) -> Plan | None:
        """One transaction for all that is finished; runs to its end even when the worker is cancelled."""
        try:
            return await asyncio.shield(self._blocking(self.settlement.settle, batch))
        finally:
            self.intake.settled()

    def report(self, batch: Batch, plan: Plan | None) -> None:
        """Count and log what was settled."""
        settled = plan.items if plan else []
        for item in settled:
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
        if batch.items:
            log.debug("settled agent=%s records=%d of=%d", self.agent.name, len(settled), len(batch.items))

    async def _grace_is_over(self) -> None:
        await self.stop.wait()
        await asyncio.sleep(self.settings.grace_seconds)

    def _blocking(self, call: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self.settling, call, *arguments)
