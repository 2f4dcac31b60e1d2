"""A worker from its slot to its end: opens what it needs, in that order, and closes it in the opposite one."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack

from farandole.handling import Handling
from farandole.job_now import NO_JOB, Jobs
from farandole.pace.shared import SharedPace
from farandole.processes import Processes
from farandole.steps.ledger import Ledger as Steps
from farandole.worker.beat import Beat
from farandole.worker.connecting import connected
from farandole.worker.worker import Worker

log = logging.getLogger("farandole.worker")


async def run_worker(worker: Worker, jobs: Jobs = NO_JOB) -> None:
    """Run `worker` until it is asked to stop. Raises its first failure; SlotLost when it must begin anew."""
    settings, agent = worker.settings, worker.agent
    async with AsyncExitStack() as stack:
        stack.callback(worker.settling.shutdown)
        stack.callback(worker.claiming.shutdown)
        stack.push_async_callback(worker.blocking, worker.ledger.close)  # behind what is still to be written
        slot = await worker.blocking(worker.ledger.open)
        resource = await stack.enter_async_context(agent.resource(settings)) if agent.resource else None
        processes = await stack.enter_async_context(Processes(agent)) if agent.cpu else None
        steps = await stack.enter_async_context(Steps(settings, agent.name, worker.outage))
        pace = SharedPace(settings, agent.name, worker.outage)
        worker.conduct.signs.paused = lambda: pace.paused
        asker = await stack.enter_async_context(connected(settings, agent, pace))
        handling = Handling(
            worker.wiring,
            resource,
            outage=worker.outage,
            suspends=True,
            processes=processes,
            steps=steps,
            asker=asker,
            jobs=jobs,
            abandoned=worker.flight.abandoned,
        )
        await worker.open(stack, handling)
        await stack.enter_async_context(Beat(settings, agent.name, slot, worker.vitals))
        group, topic = settings.group(agent.name), settings.topic(worker.wiring.topic)
        log.info("ready agent=%s group=%s slot=%d topic=%s", agent.name, group, slot, topic)
        await worker.run()
