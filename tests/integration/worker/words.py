"""The events of the worker's tests: a word is heard, and said again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from farandole import Event
from farandole.client import Client, Submission
from farandole.settings import Settings


class Heard(Event, topic="jobs.heard", stage="heard", ingest=True, partitions=4):
    """`plan` tells the test's agents what to do with it."""

    word: str
    plan: str = ""


class Said(Event, topic="jobs.said", stage="said", partitions=4):
    """What the test's agents emit."""

    word: str
    place: int = 0


class Murmured(Event, topic="jobs.heard", partitions=4):
    """Lies on the same topic; nobody reads it."""

    word: str


def submit(settings: Settings, words: Iterable[tuple[str, str]]) -> list[str]:
    """Submit (word, plan) pairs, the word being the key; their trace ids."""

    async def send() -> list[str]:
        async with Client(settings) as client:
            rows = (Submission(Heard(word=word, plan=plan), key=word) for word, plan in words)
            return [str(trace_id) async for trace_id in client.submit_many(rows)]

    return asyncio.run(send())
