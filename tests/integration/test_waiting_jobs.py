"""What the views and commands say of jobs that wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from farandole import ids, paging, postgres, reading
from farandole.paging import Filters
from farandole.postgres import Connection
from farandole.settings import Settings
from tests.integration.projection_tables import Folder, places, prepare
from tests.journeys import Blocked, Done, Log, Submitted, new_fact, written

WAIT = """INSERT INTO wait (agent, event_id, run, seq, kind, trace_id, due, topic, partition, "offset", timestamp_ms, value,
                            headers, attempts, error, woken_at)
VALUES ('classify', %s, 0, 1, %s, %s, now() + %s::interval, 'jobs.x', 0, 1, 0, '', '[]', 2, 'Err', now() + %s::interval)"""


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


def put_off(database: Connection[Any], trace_id: str, due: str | None, woken: str | None = None) -> None:
    kind = "retry" if due else "behind"
    database.execute(WAIT, (ids.new_trace_id(), kind, trace_id, due, woken))


def test_a_running_job_with_an_open_wait_waits_and_no_other_status_gives_way(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    first = {name: new_fact(Submitted) for name in ("none", "open", "behind", "woken", "blocked", "done")}
    facts = [*first.values(), new_fact(Blocked, cause=first["blocked"]), new_fact(Done, cause=first["done"])]
    records = written(Log(farandole_settings), facts)
    Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    trace = {name: fact.fields["trace_id"] for name, fact in first.items()}
    for name in ("open", "blocked", "done"):
        put_off(database, trace[name], "1 hour")
    put_off(database, trace["open"], "2 hours")
    put_off(database, trace["behind"], None)
    put_off(database, trace["woken"], "-1 second", "0 seconds")

    def having(status: str | None) -> set[str]:
        found = {str(job.trace_id) for job in paging.page(database, Filters(status=status)).jobs}
        return {name for name, trace_id in trace.items() if trace_id in found}

    assert having("waiting") == {"open", "behind"}
    assert having("running") == {"none", "woken"}, "what was woken is about to be handled"
    assert having("blocked") == {"blocked"}
    assert having("done") == {"done"}
    assert having(None) == set(trace)
    assert [(wait.kind, wait.attempts, wait.error) for wait in reading.waits(database, trace["open"])] == [
        ("retry", 2, "Err")
    ] * 2
    assert reading.waits(database, trace["none"]) == []


def test_a_job_is_stuck_when_its_wait_is_long_overdue_and_not_while_it_waits(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    first = {name: new_fact(Submitted) for name in ("idle", "waits", "behind", "overdue", "woken")}
    records = written(Log(farandole_settings), list(first.values()))
    Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    trace = {name: fact.fields["trace_id"] for name, fact in first.items()}
    put_off(database, trace["waits"], "1 hour")
    put_off(database, trace["behind"], None)
    put_off(database, trace["overdue"], "-6 minutes")
    put_off(database, trace["woken"], "-6 minutes", "-6 minutes")
    database.execute("UPDATE job SET updated_at = now() - interval '10 minutes'")
    stuck = {str(row[0]): row[1] for row in database.execute("SELECT trace_id, status FROM stuck_jobs")}
    assert stuck == {trace["idle"]: "running", trace["overdue"]: "waiting", trace["woken"]: "running"}
