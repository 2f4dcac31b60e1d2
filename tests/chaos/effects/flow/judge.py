"""jobs.asked -> jobs.judged: a cheap model says how it sounds, a dear one drafts, in a stream."""

from pydantic import BaseModel

from farandole import Agent, Context
from tests.chaos.effects.flow.events import Asked, Judged


class Verdict(BaseModel):
    """What the cheap one is asked."""

    sound: str


class Draft(BaseModel):
    """What the dear one is asked."""

    words: str


agent = Agent("judge", concurrency=8, timeout="4s", attempts=5, backoff="50ms", brake=None)


@agent.handle
async def judge(asked: Asked, ctx: Context) -> Judged:
    verdict = await ctx.ask(Verdict, "verdict.md", model="cheap", max_tokens=50, number=asked.number)
    draft = await ctx.ask(Draft, "draft.md", model="dear", max_tokens=50, stream=True, sound=verdict.sound)
    return Judged(number=asked.number, hold=asked.hold, words=draft.words)
