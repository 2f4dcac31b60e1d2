"""jobs.heard -> jobs.said: a plain handler, in processes, that does what the event's plan says."""

import time

from farandole import Agent, BlockingContext
from tests.integration.worker.plans import Excuse, carry_out, note, seconds_of
from tests.integration.worker.words import Heard, Said

agent = Agent("echo_cpu", cpu=2, concurrency=50, timeout="30s", attempts=3, backoff="10ms", reasons=Excuse)


@agent.handle
def echo(mail: Heard, ctx: BlockingContext) -> list[Said]:
    note(mail)
    if mail.plan.startswith("slow"):
        time.sleep(seconds_of(mail.plan))
    return carry_out(mail, ctx.attempt)
