"""Events sent to Kafka, a real projector that folds them over a wire, and what its tables must come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from farandole import postgres
from farandole.postgres import Connection
from farandole.settings import Settings
from tests import oracle
from tests.eventually import eventually
from tests.integration.projection_service import make_topics, running, send
from tests.integration.projection_tables import jobs, one, prepare, stage_times
from tests.journeys import Fact
from tests.wire import Wire, wired

#: Claimed, and nothing more is written about it.
HELD = "SELECT count(*) > 0 AND count(*) = count(topic_id) FROM projector_offset WHERE owner IS NOT NULL"
EVENTS = "SELECT count(*) FROM event_log"
OFFSETS = "SELECT sum(coalesce(next_offset, 0))::int FROM projector_offset"


class Traffic:
    """What was sent to a namespace, and what its tables must come to."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.sent: list[Fact] = []

    def send(self, chosen: Sequence[Fact]) -> None:
        send(self._settings, chosen)
        self.sent += chosen

    @property
    def happened(self) -> list[oracle.Happened]:
        return oracle.once(fact.happened for fact in self.sent)

    def folded(self, database: Connection[Any]) -> bool:
        return bool(one(database, EVENTS) == len(self.happened))

    def must_be_all(self, database: Connection[Any]) -> None:
        """Nothing lost, nothing doubled, nothing parked, and the offsets are those of what was sent."""
        assert jobs(database) == oracle.jobs(self.happened)
        assert stage_times(database) == oracle.stage_times(self.happened)
        assert one(database, "SELECT (SELECT count(*) FROM parked) + (SELECT count(*) FROM conflict)") == 0
        assert one(database, OFFSETS) == len(self.sent)


@contextmanager
def projecting(settings: Settings) -> Iterator[tuple[Wire, Traffic]]:
    """A real projector whose connection to the database is a wire, with its partitions claimed."""
    make_topics(settings)
    prepare(settings)
    with wired(settings) as wire, running(wire.settings):
        with postgres.connect(settings) as database:
            eventually(lambda: one(database, HELD))
        yield wire, Traffic(settings)
