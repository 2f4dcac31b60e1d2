"""What each stuck job waits for, and since when, as `stuck_jobs` tells it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from farandole import ids, postgres
from farandole.postgres import Connection
from farandole.settings import Settings
from tests.integration.projection_tables import Folder, one, places, prepare
from tests.journeys import Blocked, Classified, Done, Fact, Log, Submitted, new_fact, written

LETTER = """UPDATE event_log SET type = 'jobs.JobDeadLettered', body = '{"agent": "classify", "cause": "attempts"}'
WHERE outcome = 'blocked' RETURNING logged_at"""
HELD = """INSERT INTO step (event_id, agent, name, state, trace_id, created_at, finished_at)
VALUES (%s, 'act', 'send', 'held', %s, '2026-01-01', '2026-01-02')"""
WAIT = """INSERT INTO wait (agent, event_id, run, seq, kind, trace_id, due, topic, partition, "offset", timestamp_ms, value,
                            headers, attempts, error, woken_at, created_at)
VALUES ('classify', %s, 0, 1, 'retry', %s, '2026-02-02 10:00', 'jobs.x', 0, 1, 0, '', '[]', 2, 'Err', %s, '2026-02-02 09:00')"""
CLAIM = "INSERT INTO step (event_id, agent, created_at) VALUES (%s, %s, %s)"
KNOWN = "INSERT INTO agent_offset (agent, topic, partition) VALUES (%s, 'jobs.classified', 0)"


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def fold(settings: Settings, facts: list[Fact]) -> None:
    records = written(Log(settings), facts)
    Folder(settings, "a", places(records, settings)).fold(records)


def test_every_stuck_job_says_what_it_waits_for(farandole_settings: Settings, database: Connection[Any]) -> None:
    names = ("letter", "held", "overdue", "woken", "taken", "known", "unknown", "done", "fresh")
    first = {name: new_fact(Submitted) for name in names}
    last = {name: new_fact(Classified, cause=first[name]) for name in ("taken", "known", "fresh")}
    facts = [*first.values(), *last.values()]
    facts += [
        new_fact(Blocked, cause=first["letter"]),
        new_fact(Blocked, cause=first["held"]),
        new_fact(Done, cause=first["done"]),
    ]
    fold(farandole_settings, facts)
    trace = {name: fact.fields["trace_id"] for name, fact in first.items()}
    lettered = one(database, LETTER)
    database.execute(HELD, (first["held"].fields["event_id"], trace["held"]))
    database.execute(WAIT, (ids.new_trace_id(), trace["overdue"], None))
    database.execute(WAIT, (ids.new_trace_id(), trace["woken"], "2026-02-02 10:01"))
    database.execute(CLAIM, (last["taken"].fields["event_id"], "enrich", "2026-03-03"))
    database.execute(CLAIM, (first["known"].fields["event_id"], "classify", "2026-03-03"))
    for agent in ("enrich", "act"):
        database.execute(KNOWN, (agent,))
    database.execute(
        "UPDATE job SET updated_at = now() - interval '10 minutes' WHERE trace_id <> %s", (trace["fresh"],)
    )

    rows = database.execute("SELECT trace_id, waits_for, since FROM stuck_jobs").fetchall()
    found = {str(row[0]): row[1:] for row in rows}
    said = {name: found.pop(trace_id) for name, trace_id in trace.items() if trace_id in found}
    offset = {str(row[0]): row[1:] for row in database.execute('SELECT event_id, "offset", logged_at FROM event_log')}
    taken, known, unknown = (
        offset[fact.fields["event_id"]] for fact in (last["taken"], last["known"], first["unknown"])
    )
    assert said == {
        "letter": ("a person: dead letter of classify (attempts)", lettered),
        "held": ("a person: step send of act is held", at("2026-01-02")),
        "overdue": ("classify: retry, due 2026-02-02 10:00:00+00", at("2026-02-02 09:00")),
        "woken": ("classify: woken after its retry, and not handled yet", at("2026-02-02 10:01")),
        "taken": (f"enrich: has taken jobs.classified/0/{taken[0]}", at("2026-03-03")),
        "known": (f"a reader of jobs.classified/0/{known[0]}: act, enrich", known[1]),
        "unknown": (f"a reader of jobs.submitted/0/{unknown[0]}: no agent is known to read it", unknown[1]),
    }
    assert found == {}


def test_what_has_not_ended_is_found_by_an_index(farandole_settings: Settings, database: Connection[Any]) -> None:
    fold(farandole_settings, [new_fact(Submitted)])
    with database.transaction():
        database.execute("SET LOCAL enable_seqscan = off")
        plan = "\n".join(row[0] for row in database.execute("EXPLAIN SELECT * FROM stuck_jobs").fetchall())
    assert "job_unfinished" in plan
