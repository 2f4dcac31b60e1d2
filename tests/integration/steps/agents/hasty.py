"""jobs.heard -> jobs.said: an inline handler, which cannot wait for a step."""

from farandole import Agent, BlockingContext
from tests.integration.worker.words import Heard, Said

agent = Agent("hasty", inline=True)


@agent.handle
def say(mail: Heard, ctx: BlockingContext) -> Said:
    return ctx.once("said", lambda: Said(word=mail.word), returns=Said)
