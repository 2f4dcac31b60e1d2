"""The batch transaction and the folds, without Kafka: any order, any batching, any number of projectors, one result."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from farandole import postgres, projections, reading
from farandole.postgres import Connection
from farandole.project import find_project
from farandole.projector.store import Folded
from farandole.settings import Settings
from tests import oracle
from tests.integration.projection_tables import Folder, jobs, one, places, prepare, stage_times
from tests.journeys import TOPICS, Blocked, Classified, Done, Fact, Log, Submitted, facts, new_fact, written


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


@pytest.mark.parametrize("seed", range(4))
def test_duplicates_in_any_order_and_batching_give_the_tables_of_the_oracle(
    seed: int, farandole_settings: Settings, database: Connection[Any]
) -> None:
    chance, log = random.Random(seed), Log(farandole_settings)
    chosen = facts(seed, 60)
    again = [*chosen, *chance.choices(chosen, k=len(chosen) // 2)]
    chance.shuffle(again)
    records = [log.append(fact.event, fact.fields, chance.randrange(3)) for fact in again]
    folder = Folder(farandole_settings, "a", places(records, farandole_settings))
    while records:
        size = chance.choice([1, 2, 7, 40])
        folder.fold(records[:size])
        records = records[size:]
    happened = [fact.happened for fact in again]
    assert jobs(database) == oracle.jobs(happened)
    assert stage_times(database) == oracle.stage_times(happened)
    assert one(database, "SELECT count(*) FROM conflict") == 0


def test_every_order_and_every_split_of_a_small_journey_gives_one_result(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """All 24 orders and 8 splits, each as a job of its own; the n-th parts of all of them are folded together."""
    log, happened = Log(farandole_settings), []
    parts: list[list[Fact]] = [[] for _ in range(4)]
    for order in itertools.permutations(range(4)):
        for cuts in itertools.product((0, 1), repeat=3):
            first = new_fact(Submitted)
            second = new_fact(Classified, cause=first)
            journey = [first, second, new_fact(Blocked, cause=second), new_fact(Done, cause=second, run=1)]
            happened += [fact.happened for fact in journey]
            for place, cut in zip(order, itertools.accumulate((0, *cuts)), strict=True):
                parts[cut].append(journey[place])
    folder = Folder(farandole_settings, "a", [(topic, 0) for topic in TOPICS])
    for part in parts:
        folder.fold(written(log, part))
    assert jobs(database) == oracle.jobs(happened)


def test_two_projectors_with_the_same_jobs_crosswise_neither_deadlock_nor_count_twice(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P5: each has the other's events as duplicates, in another order."""
    chosen = facts(7, 120)
    log = Log(farandole_settings)
    halves = [written(log, chosen, 0), written(log, chosen[::-1], 1)]

    def run(number: int) -> None:
        records = halves[number]
        folder = Folder(farandole_settings, f"p{number}", places(records, farandole_settings))
        for start in range(0, len(records), 37):
            folder.fold(records[start : start + 37])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, (0, 1)))
    happened = [fact.happened for fact in chosen]
    assert jobs(database) == oracle.jobs(happened)
    assert stage_times(database) == oracle.stage_times(happened)
    ends = sum(log.ends.values())
    assert one(database, "SELECT sum(next_offset)::int FROM projector_offset") == ends


def test_a_late_event_never_moves_a_job_back(farandole_settings: Settings, database: Connection[Any]) -> None:
    """Case P2."""
    started = new_fact(Classified, hop=2)
    done = new_fact(Done, started.fields["trace_id"], hop=5)
    log = Log(farandole_settings)
    records = written(log, [done, started])
    folder = Folder(farandole_settings, "a", places(records, farandole_settings))
    for record in records:
        folder.fold([record])
    found = reading.job(database, started.fields["trace_id"])
    assert found and (found.stage, found.status) == ("done", "done")
    assert [row.hop for row in reading.journey(database, started.fields["trace_id"])] == [2, 5]


def test_a_clock_that_is_an_hour_ahead_does_not_outrank_the_end(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P10."""
    running = new_fact(Classified)
    ahead = new_fact(Classified, running.fields["trace_id"], occurred_at=running.fields["occurred_at"] + 3_600_000_000)
    done = new_fact(Done, cause=running)
    records = written(Log(farandole_settings), [ahead, done])
    Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    assert [job.status for job in reading.jobs(database)] == ["done"]


def test_the_same_event_from_two_producers_across_midnight_is_one_row(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P8: the same id and payload; the times of the two producers differ, which is no conflict."""
    before = new_fact(Done, occurred_at=1_782_863_999_500_000)
    log = Log(farandole_settings)
    after = before.fields | {"occurred_at": 1_782_864_000_500_000}
    records = [log.append(Done, before.fields), log.append(Done, after, 1)]
    folder = Folder(farandole_settings, "a", places(records, farandole_settings))
    for record in records:
        folder.fold([record])
    assert one(database, "SELECT count(*) FROM event_log") == 1
    assert one(database, "SELECT events FROM job") == 1
    assert one(database, "SELECT count(*) FROM conflict") == 0


def test_another_payload_under_the_same_id_is_a_conflict_and_the_first_stays(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    fact, log = new_fact(Done), Log(farandole_settings)
    records = [log.append(Done, fact.fields, text="first"), log.append(Done, fact.fields, text="second")]
    folder = Folder(farandole_settings, "a", places(records, farandole_settings))
    for record in records:
        folder.fold([record])
    found = reading.job(database, fact.fields["trace_id"])
    assert found and found.conflicts == 1 and found.data == {"done": {"text": "first"}}


def test_text_that_jsonb_cannot_hold_is_shown_sanitised_and_kept_raw(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Cases P3 and K10: the partition moves on."""
    fact, log = new_fact(Submitted, tenant="a\0b"), Log(farandole_settings)
    records = [log.append(Submitted, fact.fields, text="a\0b")]
    records += [log.put("jobs.submitted", 0, value) for value in (None, b"")]
    folder = Folder(farandole_settings, "a", places(records, farandole_settings))
    folder.fold(records)
    row = database.execute("SELECT sanitised, body, value, tenant FROM event_log").fetchone()
    assert row == (True, {"text": "a\N{REPLACEMENT CHARACTER}b"}, records[0].value, "a\N{REPLACEMENT CHARACTER}b")
    parked = database.execute('SELECT "offset", cause, value FROM parked ORDER BY 1').fetchall()
    assert parked == [(1, "empty", None), (2, "empty", b"")]


def test_bytes_that_are_no_event_are_parked_with_their_offset(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P9, for bytes: good, bad, good in one batch."""
    chosen, log = facts(3, 20), Log(farandole_settings)
    records = written(log, chosen)
    records.append(log.put("jobs.done", 0, b"\xc3\x01junk", b"some key"))
    Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    assert jobs(database) == oracle.jobs(fact.happened for fact in chosen)
    assert one(database, "SELECT count(*) FROM parked") == 1


def test_an_event_the_database_refuses_is_found_by_halving_and_parked_alone(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P9: good, bad, good a hundred times in one batch; the bad one breaks a constraint of the core fold."""
    chosen, log = facts(5, 30), Log(farandole_settings)
    bad = new_fact(Submitted, hop=4711)
    records = written(log, [*chosen[:50], bad, *chosen[50:]])
    database.execute("ALTER TABLE job ADD CONSTRAINT no_such_hop CHECK (hop <> 4711)")
    Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    parked = database.execute("SELECT cause, trace_id::text FROM parked").fetchall()
    assert parked == [("refused", bad.fields["trace_id"])]
    assert jobs(database) == oracle.jobs(fact.happened for fact in chosen)
    assert one(database, f"SELECT count(*) FROM event_log WHERE event_id = '{bad.fields['event_id']}'") == 0


def test_a_zombie_is_refused_once_its_partition_was_claimed_again(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P1: the older owner's rows are refused, whatever it still holds."""
    log = Log(farandole_settings)
    first, second = written(log, [new_fact(Submitted)]), written(log, [new_fact(Submitted)])
    zombie = Folder(farandole_settings, "zombie", [("jobs.submitted", 0)])
    zombie.fold(first)
    heir = Folder(farandole_settings, "heir", [("jobs.submitted", 0)])
    assert zombie.fold(second).refused == {("jobs.submitted", 0)}
    assert one(database, "SELECT count(*) FROM event_log") == 1
    assert heir.fold(second).new == 1


def test_records_that_were_folded_before_are_passed_over(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    records = written(Log(farandole_settings), facts(1, 5))
    folder = Folder(farandole_settings, "a", places(records, farandole_settings))
    folder.fold(records)
    assert folder.fold(records) == Folded(new=0, duplicates=0, parked=0, refused=frozenset())
    assert one(database, "SELECT count(*) FROM conflict") == 0


def test_a_refold_gives_the_tables_that_were_folded_live(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    chosen, log = facts(11, 80), Log(farandole_settings)
    records = written(log, chosen)
    folder = Folder(farandole_settings, "a", places(records, farandole_settings))
    for start in range(0, len(records), 23):
        folder.fold(records[start : start + 23])
    live = jobs(database), stage_times(database)
    database.execute("UPDATE job SET events = 0, stage = 'nonsense' WHERE trace_id::text < '8'")
    database.execute("DELETE FROM stage_times WHERE stage = 'done'")
    count = projections.refold(farandole_settings, projections.discover(find_project()))
    assert count == len(oracle.once(fact.happened for fact in chosen))
    assert (jobs(database), stage_times(database)) == live


def test_a_projection_that_fails_is_suspended_and_the_others_go_on(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    log = Log(farandole_settings)
    records = written(log, [new_fact(Submitted), new_fact(Done)])
    database.execute("ALTER TABLE stage_times ADD CONSTRAINT never CHECK (stage <> 'done')")
    folder = Folder(farandole_settings, "a", places(records, farandole_settings))
    folder.fold(records[:1])
    folder.fold(records[1:])
    assert one(database, "SELECT count(*) FROM job") == 2
    assert "never" in one(database, "SELECT error FROM projection WHERE name = 'stage_times'")
    assert one(database, "SELECT count(*) FROM parked") == 0
