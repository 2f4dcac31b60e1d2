"""jobs.said -> jobs.heard: hears what was said, for ever."""

from farandole import Agent
from tests.integration.worker.words import Heard, Said

agent = Agent("parrot", inline=True)


@agent.handle
def parrot(said: Said) -> Heard:
    return Heard(word=said.word)
