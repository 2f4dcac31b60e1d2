"""jobs.heard -> nothing: finds no event good enough."""

from farandole import Agent, Reject
from tests.integration.worker.words import Heard, Said

agent = Agent("grump", inline=True, brake=None)


@agent.handle
def grump(heard: Heard) -> Said:
    raise Reject(f"{heard.word}: never")
