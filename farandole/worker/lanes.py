"""Events of one key in order, different keys at the same time, up to the agent's concurrency."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from farandole.envelope import Envelope
from farandole.handling import Handling
from farandole.worker.batch import Item


async def run_lanes(items: Iterable[Item], handling: Handling, concurrency: int) -> None:
    """Handle all `items`; each one's outcome is set as it is known, so that a cut-off run leaves the rest open.

    A lane is the items of one key, in the order of the log; a record without a key is a lane of its own.
    """
    if handling.wiring.agent.inline:
        for item in items:
            await _handle(item, handling)
        return
    lanes: dict[object, list[Item]] = {}
    for item in items:
        key = item.record.key
        lanes.setdefault((item.held, key) if key else item, []).append(item)
    waiting = deque(lanes.values())

    async def runner() -> None:
        while waiting:
            for item in waiting.popleft():
                await _handle(item, handling)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(waiting))):
            group.create_task(runner())


async def _handle(item: Item, handling: Handling) -> None:
    assert item.payload is not None
    assert item.fields is not None
    item.outcome = await handling.run(item.payload, Envelope(item.fields))
