"""The events of the flow under fire. `work` says what is to befall the event, so that whoever looks on knows what is right."""

from __future__ import annotations

from farandole import Event


class Sent(Event, topic="jobs.sent", stage="sent", ingest=True):
    """What producers put in: the `seq`-th event of its job."""

    seq: int
    work: str = ""


class Sorted(Event, topic="jobs.sorted", stage="sorted"):
    """`handling` names the line of the ledger in which this was made."""

    seq: int
    work: str
    handling: str


class Noted(Event, topic="jobs.noted"):
    """A second output, of every fifth event of a job."""

    seq: int
    handling: str


class Worked(Event, topic="jobs.worked", stage="worked"):
    """As Sorted."""

    seq: int
    work: str
    handling: str


class Finished(Event, topic="jobs.finished", stage="finished", terminal="done"):
    """As Sorted; ends the job, which goes on all the same where it has more events."""

    seq: int
    handling: str
