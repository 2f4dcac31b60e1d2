"""What a projector sets aside: the records that are at fault themselves, and only those."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from farandole import postgres
from farandole.postgres import Connection, psycopg
from farandole.settings import Settings
from tests import oracle
from tests.integration.projection_tables import Folder, jobs, one, places, prepare, refuse
from tests.journeys import Log, Submitted, facts, new_fact, written


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


def test_of_good_and_bad_records_in_one_batch_exactly_the_bad_ones_are_parked(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P9, for bytes: good, bad, good a hundred times."""
    chosen, log = facts(3, 60)[:200], Log(farandole_settings)
    records = []
    for before, after in zip(chosen[::2], chosen[1::2], strict=True):
        records += [*written(log, [before]), log.put("jobs.done", 1, b"\xc3\x01junk"), *written(log, [after])]
    folded = Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    assert folded.parked == 100 and one(database, "SELECT count(*) FROM parked WHERE partition = 1") == 100
    assert jobs(database) == oracle.jobs(fact.happened for fact in chosen)


def test_of_a_batch_with_one_event_that_the_database_refuses_exactly_that_one_is_parked(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P9, for each class of errors that the data itself causes: cardinality, data, integrity, limits."""
    log, happened = Log(farandole_settings), []
    for number, state in enumerate(("21000", "22003", "23514", "54000")):
        chosen, bad = facts(50 + number, 25), new_fact(Submitted, hop=4711)
        middle = len(chosen) // 2
        records = written(log, [*chosen[:middle], bad, *chosen[middle:]])
        refuse(database, state, 4711)
        folder = Folder(farandole_settings, "a", places(records, farandole_settings))
        with closing(folder.store):
            folder.fold(records)
        last = database.execute("SELECT trace_id::text, cause, error FROM parked ORDER BY parked_at DESC").fetchone()
        assert last == (bad.fields["trace_id"], "refused", "no such hop"), state
        assert one(database, "SELECT count(*) FROM parked") == number + 1, state
        happened += [fact.happened for fact in chosen]
    assert jobs(database) == oracle.jobs(happened)


def test_an_outage_in_the_middle_of_a_batch_parks_nothing_and_moves_nothing(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Shutdown, disk full, serialization and deadlock, locks: whatever the database stops with is no fault of a record."""
    chosen, log = facts(9, 10), Log(farandole_settings)
    records = written(log, chosen)
    for state in ("57014", "57P01", "53100", "53200", "40001", "40P01", "55P03", "58030", "25P03"):
        refuse(database, state)
        folder = Folder(farandole_settings, "a", places(records, farandole_settings))
        with closing(folder.store), pytest.raises(psycopg.Error) as stopped:
            folder.fold(records)
        assert postgres.is_outage(stopped.value), state
        assert one(database, "SELECT count(*) FROM parked") == one(database, "SELECT count(*) FROM event_log") == 0, (
            state
        )
        assert one(database, "SELECT count(next_offset) FROM projector_offset") == 0, state
    database.execute("DROP TRIGGER refuse ON job")
    Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    assert jobs(database) == oracle.jobs(fact.happened for fact in chosen)
