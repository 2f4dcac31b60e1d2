"""jobs.heard -> jobs.said: a model decides, then the handler may crash before its output is committed."""

import os
import signal
from enum import StrEnum

from pydantic import BaseModel

from farandole import Agent, Context
from tests.integration.steps.agents.poster import once
from tests.integration.worker.words import Heard, Said

OPTIONS = os.environ.get("TEST_OPTIONS", "").split()


class Sound(StrEnum):
    """How a word may sound."""

    SOFT = "soft"
    HARD = "hard"


class Verdict(BaseModel):
    """What is asked."""

    sound: Sound
    place: int


agent = Agent(
    "judge",
    concurrency=int(os.environ.get("TEST_CONCURRENCY", "50")),
    timeout="20s",
    attempts=3,
    backoff="10ms",
    over_budget="wait" if "wait" in OPTIONS else "fail",
)


def whole(verdict: Verdict) -> None:
    """The agent's rule."""
    if verdict.place < 0:
        raise ValueError("place is negative; expected 0 or more")


@agent.handle
async def judge(mail: Heard, ctx: Context) -> Said:
    verdict = await ctx.ask(
        Verdict,
        "judge.md",
        model="cheap",
        check=whole,
        fallback=["dear"] if "fallback" in OPTIONS else [],
        otherwise=(lambda: Verdict(sound=Sound.SOFT, place=99)) if "rules" in OPTIONS else None,
        stream="stream" in OPTIONS,
        max_tokens=200,
        mail=mail,
    )
    if mail.plan == "kill-later" and once(mail.word):
        os.kill(os.getpid(), signal.SIGKILL)
    return Said(word=f"{mail.word} {verdict.sound} {ctx.decided_by}", place=verdict.place)
