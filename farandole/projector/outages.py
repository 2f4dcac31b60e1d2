"""What a projector waits out, and how it names what is away."""

from __future__ import annotations

from farandole import kafka, postgres
from farandole.errors import FarandoleError, Stopped
from farandole.kafka import KafkaException
from farandole.projector.folds import NotLive


def only(failure: Exception) -> None:
    """Raise what waiting does not mend."""
    if isinstance(failure, NotLive) or postgres.is_outage(failure) or kafka.is_outage(failure):
        return
    if isinstance(failure, FarandoleError):
        raise failure
    raise Stopped(f"{type(failure).__name__}: {failure}") from failure


def away(failure: Exception) -> str:
    """Who does not answer: an `Unreachable` is raised from the client's own error."""
    return "Kafka" if isinstance(failure.__cause__ or failure, KafkaException) else "the database"


def bound(failure: Exception, lasted: float, limit: float) -> None:
    """Raise Stopped when an outage has lasted more than `limit` seconds. A core that is not there yet is no outage."""
    if lasted > limit and not isinstance(failure, NotLive):
        raise Stopped(f"{away(failure)} was away for more than {limit:.0f} s: {failure}")
