"""jobs.sorted -> jobs.worked: async, 0 to 20 ms each, now and then seconds, or past its timeout, or with an error."""

import asyncio
import os
import random

from farandole import Agent, Context, Fail, Reject
from tests.chaos.flow.events import Sorted, Worked
from tests.chaos.flow.ledger import Ledger

agent = Agent("slow", concurrency=int(os.environ.get("CHAOS_CONCURRENCY", "50")), timeout="4s", backoff="100ms")
ledger = Ledger("slow")


@agent.handle
async def work(found: Sorted, ctx: Context) -> Worked:
    with ledger.handling(ctx) as name:
        if found.work == "slow.nap":
            await asyncio.sleep(random.uniform(1, 3))
        elif found.work == "slow.hang" and ctx.attempt == 1:
            await asyncio.sleep(3600)
        elif found.work == "slow.flaky" and ctx.attempt == 1:
            raise ConnectionError("as it was told to")
        elif found.work == "slow.fail":
            raise Fail("told", "as it was told to")
        elif found.work == "slow.reject":
            raise Reject("as it was told to")
        else:
            await asyncio.sleep(random.uniform(0, 0.02))
        return Worked(seq=found.seq, work=found.work, handling=name)
