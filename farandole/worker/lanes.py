"""Events of one key in order, different keys at the same time, up to the agent's concurrency."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable

from farandole.envelope import Envelope
from farandole.handling import Handling
from farandole.worker.batch import Item

#: Seconds. Inline handlers never wait, so signals and the other agents of the process get their turn after this.
INLINE_TURN = 0.01


async def run_lanes(items: Iterable[Item], handling: Handling, concurrency: int) -> None:
    """Handle all `items`; each one's outcome is set as it is known, so that a cut-off run leaves the rest open.

    A lane is the items of one key, in the order of the log; a record without a key is a lane of its own.
    """
    if handling.wiring.agent.inline:
        turn = time.perf_counter()
        for item in items:
            await _handle(item, handling)
            if time.perf_counter() - turn > INLINE_TURN:
                await asyncio.sleep(0)
                turn = time.perf_counter()
        return
    lanes: dict[object, list[Item]] = {}
    for item in items:
        key = item.record.key
        lanes.setdefault((item.held, key) if key else item, []).append(item)
    waiting = deque(lanes.values())

    async def runner() -> None:
        while waiting:
            for item in waiting.popleft():
                if not item.held.lost:  # nobody may commit it any more
                    await _handle(item, handling)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(waiting))):
            group.create_task(runner())


async def _handle(item: Item, handling: Handling) -> None:
    payload, fields = item.event()
    item.outcome = await handling.run(payload, Envelope(fields))
