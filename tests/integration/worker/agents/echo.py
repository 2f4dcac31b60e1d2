"""jobs.heard -> jobs.said: an async handler that does what the event's plan says."""

import asyncio

from farandole import Agent, Context
from tests.integration.worker.plans import Excuse, carry_out, note, seconds_of
from tests.integration.worker.words import Heard, Said

agent = Agent("echo", concurrency=50, timeout="30s", attempts=3, backoff="10ms", reasons=Excuse)


@agent.handle
async def echo(mail: Heard, ctx: Context) -> list[Said]:
    note(mail)
    if mail.plan.startswith("slow"):
        await asyncio.sleep(seconds_of(mail.plan))
    return carry_out(mail, ctx.attempt)
