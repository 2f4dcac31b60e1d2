"""jobs.heard -> jobs.said: an agent that puts off what fails, and holds later events of its key."""

import asyncio

from farandole import Agent, Context
from tests.integration.worker.plans import Excuse, carry_out, note, seconds_of
from tests.integration.worker.words import Heard, Said

agent = Agent(
    "orderly", concurrency=50, timeout="30s", attempts=9, in_place="10ms", order="hold", backoff="10ms", reasons=Excuse
)


@agent.handle
async def orderly(mail: Heard, ctx: Context) -> list[Said]:
    note(mail)
    if mail.plan.startswith("slow"):
        await asyncio.sleep(seconds_of(mail.plan))
    return carry_out(mail, ctx.attempt)
