"""jobs.heard -> jobs.said: reads another team's event by a class of its own, of one field."""

from farandole import Agent, Event
from tests.integration.worker.words import Said


class Word(Event, topic="jobs.heard", name="Heard", view=True):
    word: str


agent = Agent("peek", inline=True)


@agent.handle
def peek(heard: Word) -> Said:
    return Said(word=heard.word)
