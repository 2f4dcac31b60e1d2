"""jobs.heard -> jobs.said: an inline handler that does what the event's plan says."""

from farandole import Agent, BlockingContext
from tests.integration.worker.plans import Excuse, carry_out, note
from tests.integration.worker.words import Heard, Said

agent = Agent("echo_inline", inline=True, attempts=3, backoff="10ms", reasons=Excuse)


@agent.handle
def echo(mail: Heard, ctx: BlockingContext) -> list[Said]:
    note(mail)
    return carry_out(mail, ctx.attempt)
