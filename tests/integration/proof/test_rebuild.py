"""Everything is folded again while events flow and people read: they see whole tables at every moment."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from farandole import postgres, projections
from farandole.postgres import Connection, sql
from farandole.project import find_project
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.projection_tables import one
from tests.integration.proof.stage import PROVE
from tests.integration.proof.traffic import projecting
from tests.journeys import TOPICS, facts
from tests.kafka_log import KafkaLog

#: One statement, so one moment: events and jobs as job_state has them, each beside what the log says.
LOOK = """
SELECT (SELECT coalesce(sum(events), 0)::int FROM job_state), (SELECT count(*)::int FROM event_log),
       (SELECT count(*)::int FROM job_state), (SELECT count(DISTINCT trace_id)::int FROM event_log)
"""
EFFECTS = "SELECT (SELECT count(*) FROM step) + (SELECT count(*) FROM usage) + (SELECT count(*) FROM wait)"
REFOLDS = max(2, PROVE // 10)


@dataclass(slots=True)
class Reader:
    """Looks again and again on a thread of its own, as a person's connection would."""

    seen: list[tuple[int, int, int, int]] = field(default_factory=list)
    failed: list[BaseException] = field(default_factory=list)

    def run(self, settings: Settings, stop: threading.Event) -> None:
        try:
            with postgres.connect(settings) as connection:
                while not stop.is_set():
                    self.seen += connection.execute(LOOK, prepare=len(self.seen) % 2 == 0).fetchall()
        except BaseException as failure:  # noqa: BLE001  held against the test below
            self.failed.append(failure)

    def complaints(self) -> list[str]:
        totals = [look[0] for look in self.seen]
        found = [f"job_state and event_log differ: {look}" for look in self.seen if look[::2] != look[1::2]]
        found += [f"{was} events became {now}" for was, now in itertools.pairwise(totals) if now < was]
        return found + [repr(failure) for failure in self.failed]


@contextmanager
def reading(settings: Settings) -> Iterator[Reader]:
    stop, reader = threading.Event(), Reader()
    thread = threading.Thread(target=reader.run, args=(settings, stop))
    thread.start()
    try:
        yield reader
    finally:
        stop.set()
        thread.join()


def test_refolds_amid_traffic_show_readers_no_empty_or_mixed_table_and_end_the_same(
    farandole_settings: Settings,
) -> None:
    """Case P6: a rebuild, and another one, with live traffic: identical tables, and no effect ran."""
    found = projections.discover(find_project())
    with projecting(farandole_settings) as (_, traffic), postgres.connect(farandole_settings) as database:
        traffic.send(facts(400, 20))
        eventually(lambda: traffic.folded(database))
        before = one(database, EFFECTS)
        with reading(farandole_settings) as reader:
            for number in range(REFOLDS):
                traffic.send(facts(401 + number, 40))
                for projection in found:
                    projections.refold(farandole_settings, found, projection.name)
                looks = len(reader.seen)
                eventually(lambda looks=looks: len(reader.seen) > looks + 3 or reader.failed)  # type: ignore[misc]
            eventually(lambda: traffic.folded(database))
        assert reader.complaints() == []
        assert len({look[0] for look in reader.seen}) > REFOLDS, "nothing happened while it was looked at"
        traffic.must_be_all(database)
        folded = rows(database)
        projections.refold(farandole_settings, found)
        assert rows(database) == folded
        assert one(database, EFFECTS) == before
    log = KafkaLog(farandole_settings.brokers, farandole_settings.namespace)
    assert sum(len(log.read(topic)) for topic in TOPICS) == len(traffic.sent)


def rows(database: Connection[Any]) -> dict[str, list[Any]]:
    """Every row of every projection's tables."""
    names = [name for projection in projections.discover(find_project()) for name in projection.table_names]
    query = sql.SQL("SELECT * FROM {} AS one ORDER BY one::text")
    return {name: database.execute(query.format(sql.Identifier(name))).fetchall() for name in names}
