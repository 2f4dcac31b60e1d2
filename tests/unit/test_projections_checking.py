"""The parts of `projections check` that need no database: what SQL says, ways to fold, events drawn by chance."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from farandole.projections.checking import drawn, layouts, wording
from farandole.projections.checking.checker import told
from farandole.projections.checking.layouts import Layout
from farandole.settings import Settings
from tests.journeys import EVENTS

A, B, C, D = (UUID(int=number) for number in range(4))
JOBS = {A: A, B: A, C: C, D: C}


@pytest.mark.parametrize(
    ("fold", "found"),
    [
        ("INSERT INTO t SELECT 1;\n  COMMIT;", [(2, "COMMIT")]),
        ("/* ; */ BEGIN;\nSELECT 1;\nend", [(1, "BEGIN"), (3, "end")]),
        ("START\nTRANSACTION ISOLATION LEVEL SERIALIZABLE", [(1, "START TRANSACTION ISOLATION LEVEL SERIAL")]),
        ("ROLLBACK", [(1, "ROLLBACK")]),
        ("SAVEPOINT a; SELECT 1; ROLLBACK TO SAVEPOINT a; ROLLBACK WORK TO a; RELEASE a", []),
        ("-- COMMIT;\nSELECT '; COMMIT', $x$; COMMIT $x$ /* ;\nCOMMIT */", []),
        ("SELECT CASE WHEN true THEN 1 END; SELECT endpoint FROM commits", []),
    ],
)
def test_a_statement_that_ends_the_transaction_is_found_with_its_line(fold: str, found: list[tuple[int, str]]) -> None:
    assert list(wording.ends_of_transaction(fold)) == found


def test_the_clock_and_chance_are_seen_outside_of_comments_and_texts() -> None:
    text = "-- now()\nSELECT 'now()', clock_timestamp(),\n current_date, known(), random()"
    assert wording.clock(text) == [(2, "clock_timestamp"), (3, "current_date")]
    assert wording.chance(text) == [(3, "random")]
    assert wording.serial("id bigint GENERATED ALWAYS AS IDENTITY, n bigserial") == [
        (1, "AS IDENTITY"),
        (1, "bigserial"),
    ]


def test_batches_that_are_folded_at_once_are_of_different_jobs() -> None:
    for seed in range(20):
        layout = layouts.at_once([A, B, C, D], JOBS, 1, random.Random(seed))
        assert sorted(one for batch in layout.batches for one in batch) == [A, B, C, D]
        for one, other in zip(layout.batches[::2], layout.batches[1::2], strict=True):
            assert {JOBS[id_] for id_ in one}.isdisjoint(JOBS[id_] for id_ in other)


def test_a_layout_of_fewer_events_keeps_its_pairs() -> None:
    pairs = Layout(((A,), (C,), (B,), (D,)), way="at once")
    assert pairs.of({C, B}).batches == ((), (C,), (B,), ())
    assert pairs.of({A, C}).batches == ((A,), (C,))
    assert Layout(((A, B), (C,), (A,))).of({A}).batches == ((A,), (A,))


def test_ways_to_fold_are_told_in_letters() -> None:
    assert told(Layout(((B,), (A,))), [A, B]) == "B, then A"
    assert told(Layout(((B, A),)), [A, B]) == "B, A in one batch"
    assert told(Layout(((A, B), (C,))), [A, B, C]) == "A and B in one batch, then C"
    assert told(Layout(((A,), (C,)), way="at once"), [A, C]) == "A and B at once in two projectors"
    assert told(Layout(((A,),), plan=("enable_hashagg",)), [A]) == "A (planned without hashagg)"


def test_drawn_events_are_the_same_for_a_seed_and_of_every_class() -> None:
    settings = Settings()
    rows = drawn.rows(EVENTS, settings, jobs=4, seed=7)
    assert rows == drawn.rows(EVENTS, settings, jobs=4, seed=7)
    assert rows != drawn.rows(EVENTS, settings, jobs=4, seed=8)
    assert len(set(rows)) == len(rows) == 20
    for event in EVENTS:
        assert sum(f"jobs.{event.__name__}".encode() in row for row in rows) >= 2
