"""A partition is made while others are at work: what moves into it is missed by nobody, and refused to nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from farandole import postgres, projections
from farandole.projections import building
from farandole.projections.building import Builder
from farandole.projections.registered import want
from farandole.projections.replacing import live
from farandole.retention import partitions
from farandole.retention.periods import Period
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.projection_tables import one
from tests.integration.retention.old_jobs import NOW, Jobs
from tests.journeys import Submitted

#: Days before NOW. No partition was made for then yet.
LATER = -200

_WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    " AND EXISTS (SELECT FROM pg_locks WHERE pg_locks.pid = pg_stat_activity.pid AND NOT granted"
    " AND relation = 'event_log_default'::regclass)"
)


@contextmanager
def partition_under_way(settings: Settings) -> Iterator[None]:
    """Its partition is made by another one, and is there at the end of the block."""
    with postgres.connect(settings) as other, other.transaction():
        partitions._make(other, Period.of(NOW - timedelta(days=LATER), monthly=True))
        yield


def somebody_waits(jobs: Jobs) -> None:
    eventually(lambda: one(jobs.connection, _WAITING) > 0)


def test_an_event_that_comes_alone_meanwhile_is_not_parked(jobs: Jobs, farandole_settings: Settings) -> None:
    """Postgres has chosen the default partition for it, where it must not lie any more when it gets there."""
    with partition_under_way(farandole_settings):
        projector = threading.Thread(target=jobs.job, args=(LATER, Submitted))
        projector.start()
        somebody_waits(jobs)
    projector.join(30)
    assert one(jobs.connection, "SELECT count(*) FROM parked") == 0
    assert list(jobs.left().values()) == [1]


def test_a_build_meanwhile_misses_nothing(
    jobs: Jobs, farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that was planned before looks for the events where they were."""
    monkeypatch.setattr(building, "CHUNK", 2)
    jobs.job(100), jobs.job(LATER)
    stop: list[threading.Thread] = []

    def meanwhile(_: str, what: str) -> None:
        if what.startswith("folded") and not stop:
            made, begun = threading.Event(), threading.Thread(target=lambda: make(made))
            stop.append(begun)
            begun.start()
            assert made.wait(30)

    def make(made: threading.Event) -> None:
        with partition_under_way(farandole_settings), postgres.connect(farandole_settings) as looker:
            made.set()
            eventually(lambda: one(looker, _WAITING) > 0)

    (core,) = live(jobs.connection)
    assert core.name == projections.CORE
    want(jobs.connection, core, anew=True)
    with postgres.connect(farandole_settings) as connection:
        builder = Builder(farandole_settings, connection, meanwhile)
        with builder.alone() as mine:
            assert mine and builder.build_next()
    stop[0].join(30)
    assert list(jobs.left().values()) == [2, 2]
