"""jobs.heard -> jobs.said: posts once, in a plain handler."""

from farandole import Agent, BlockingContext
from tests.integration.steps.posting import post
from tests.integration.worker.words import Heard, Said

agent = Agent("plain", concurrency=20, timeout="30s", attempts=4, backoff="10ms")


@agent.handle
def say(mail: Heard, ctx: BlockingContext) -> Said:
    receipt = ctx.once("post", lambda key: post(mail.word, mail.plan, key).model_dump(), returns=dict)
    return Said(word=mail.word, place=receipt["number"])
