"""jobs.heard -> nothing: what it cannot handle ends the job."""

from farandole import Agent, Reject
from tests.integration.worker.words import Heard, Said

agent = Agent("grim", inline=True, if_dead="fail")


@agent.handle
def grim(heard: Heard) -> Said:
    raise Reject(f"{heard.word}: never")
