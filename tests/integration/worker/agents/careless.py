"""jobs.heard -> jobs.said: a handler that leaves behind what does not end by itself."""

import asyncio
import contextlib
import threading
import time

from farandole import Agent
from tests.integration.worker.plans import note
from tests.integration.worker.words import Heard, Said

agent = Agent("careless", concurrency=10, timeout="60s")
KEPT: list[object] = []


async def stubborn() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(600)


@agent.handle
async def careless(mail: Heard) -> Said:
    note(mail)
    match mail.plan:
        case "swallow":
            await stubborn()
        case "to_thread":
            await asyncio.to_thread(time.sleep, 600)
        case "task":
            KEPT.append(asyncio.create_task(stubborn()))
        case "thread":
            threading.Thread(target=time.sleep, args=(600,), daemon=False).start()
    return Said(word=mail.word)
