"""The events of the worker's tests: a word is heard, and said again."""

from __future__ import annotations

from farandole import Event


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
