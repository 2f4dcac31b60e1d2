"""The events of the flow of effects. `hold` says what is to become of a mail of which nobody knows whether it went out."""

from __future__ import annotations

from farandole import Event


class Asked(Event, topic="jobs.asked", stage="asked", ingest=True, partitions=4):
    """What is put in; every job is one."""

    number: int
    hold: bool


class Judged(Event, topic="jobs.judged", stage="judged", partitions=4):
    """What two models have said."""

    number: int
    hold: bool
    words: str


class Posted(Event, topic="jobs.posted", stage="posted", terminal="done", partitions=4):
    """The mail is out."""

    number: int
    message_id: str
