"""jobs.heard -> jobs.said: says again what it hears, and ends its process over what tells it to."""

import asyncio
import os
import signal

from farandole import Agent
from tests.integration.worker.words import Heard, Said

agent = Agent("deadly", concurrency=10, timeout="30s")


@agent.handle
async def deadly(mail: Heard) -> Said:
    match mail.plan:
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(0.02)
    return Said(word=mail.word)
