"""jobs.heard -> jobs.said: a dead letter ends the job, and three in a row stop the agent."""

from farandole import Agent, BlockingContext
from tests.integration.worker.plans import carry_out
from tests.integration.worker.words import Heard, Said

agent = Agent("strict", inline=True, attempts=1, if_dead="fail", brake=3)


@agent.handle
def strict(heard: Heard, ctx: BlockingContext) -> list[Said]:
    return carry_out(heard, ctx.attempt)
