"""jobs.heard -> jobs.said: a view of a field that the event does not have."""

from farandole import Agent, Event
from tests.integration.worker.words import Said


class Word(Event, topic="jobs.heard", name="Heard", view=True):
    wort: str


agent = Agent("blind", inline=True)


@agent.handle
def blind(heard: Word) -> Said:
    return Said(word=heard.wort)
