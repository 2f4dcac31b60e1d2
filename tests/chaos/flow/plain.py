"""jobs.worked -> jobs.finished: plain, in threads; some ask to be tried again seconds later."""

import os
import random
import time
from typing import cast

from farandole import Agent, BlockingContext, Reject, Retry
from farandole.retries import Order
from tests.chaos.flow.events import Finished, Worked
from tests.chaos.flow.ledger import Ledger

agent = Agent(
    "plain",
    concurrency=int(os.environ.get("CHAOS_THREADS", "8")),
    timeout="20s",
    order=cast(Order, os.environ.get("CHAOS_ORDER", "overtake")),
)
ledger = Ledger("plain")


@agent.handle
def finish(worked: Worked, ctx: BlockingContext) -> Finished:
    with ledger.handling(ctx) as name:
        if worked.work == "plain.retry" and ctx.attempt == 1:
            raise Retry("as it was told to", after=random.uniform(2, 3))
        if worked.work == "plain.reject":
            raise Reject("as it was told to")
        time.sleep(random.uniform(0, 0.005))
        return Finished(seq=worked.seq, handling=name)
