"""jobs.heard -> jobs.said: posts once, in an async handler, then may crash or fail before its output is committed."""

import asyncio
import os
import signal
from pathlib import Path

from farandole import Agent, Context, Reject
from tests.integration.steps.posting import Receipt, post, posted
from tests.integration.worker.words import Heard, Said

agent = Agent("poster", concurrency=50, timeout="30s", attempts=4, backoff="10ms")


@agent.handle
async def say(mail: Heard, ctx: Context) -> Said:
    async def send(key: str) -> Receipt:
        if mail.plan.startswith("slow"):
            await asyncio.sleep(float(mail.plan.partition(":")[2]))
        return post(mail.word, mail.plan, key)

    receipt = await ctx.once("post", send, if_unknown="hold" if os.environ.get("TEST_HOLD") else "repeat")
    if mail.plan == "kill-later" and once(mail.word):
        os.kill(os.getpid(), signal.SIGKILL)
    if mail.plan == "fail-later" and once(mail.word):
        raise ConnectionResetError("after the post")
    if mail.plan == "reject-later" and once(mail.word):
        raise Reject("after the post")
    return Said(word=mail.word, place=receipt.number)


def once(word: str) -> bool:
    mark: Path = posted().with_name(f"{word}.later")
    if mark.exists():
        return False
    mark.touch()
    return True
