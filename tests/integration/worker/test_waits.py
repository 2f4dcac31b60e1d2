"""Waits as rows: written once and by the right owner, gone after the last output, one behind the other where that is asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from farandole import Agent, migrate, postgres
from farandole.outcome import DeadLettered, Emitted, Outcome, Skipped, Suspended
from farandole.postgres import Connection
from farandole.settings import Settings
from farandole.worker.waits import Waits, ended, put_behind, unpack_headers
from tests.eventually import eventually
from tests.integration.worker.waiting import Desk


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    migrate.migrate(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        connection.execute("SET synchronous_commit = off")  # as the worker's session has it
        yield connection


@pytest.fixture
def desk(farandole_settings: Settings, database: Connection[Any]) -> Desk:
    return Desk(farandole_settings, database)


@pytest.fixture
def waits(desk: Desk) -> Waits:
    return Waits(desk.settings, desk.agent)


@pytest.fixture
def held(desk: Desk) -> Waits:
    return Waits(desk.settings, Agent("echo", order="hold"))


def test_a_wait_holds_the_whole_record_and_its_due_time_by_the_databases_clock(desk: Desk, waits: Waits) -> None:
    """Case K9 for headers: no value, no text, the same name twice, a name with NUL and one with a lone surrogate."""
    odd = [("a", None), ("a", b"\xff"), ("", b""), ("n\0l", b"x"), ("s\ud800", b"y")]
    item = desk.claim(
        desk.item("k", 7, 3600.5, partition=3, headers=odd, value=b"\x00\xff", attempts=2, error="Err: \0 \ud800"), "me"
    )
    assert waits.suspend(desk.connection, [item], "me") == []
    columns = 'topic, partition, "offset", timestamp_ms, key, value, attempts, error, seq, kind, run, due - created_at'
    due = timedelta(seconds=3600.5)
    assert desk.rows(columns) == [
        ("jobs.heard", 3, 7, 1_700_000_000_000, b"k", b"\x00\xff", 2, "Err: \\0 \\ud800", 1, "retry", 0, due)
    ]
    assert unpack_headers(desk.rows("headers")[0][0]) == odd
    assert desk.suspended() == [7]


def test_a_batch_is_put_off_together_and_a_lost_claim_is_made_again(desk: Desk, waits: Waits) -> None:
    claimed = [desk.claim(desk.item("k", offset), "me") for offset in range(50)]
    lost = desk.item(None, 50)
    assert waits.suspend(desk.connection, [*claimed, lost], "me") == []
    assert len(desk.rows()) == 51
    assert desk.suspended() == list(range(51))


def test_what_another_worker_owns_by_now_is_not_put_off(desk: Desk, waits: Waits) -> None:
    """The other one may have emitted already: a wake would emit a second time."""
    mine, taken = desk.claim(desk.item("a", 1), "me"), desk.claim(desk.item("b", 2), "me")
    desk.claim(taken, "other")
    assert waits.suspend(desk.connection, [mine, taken], "me") == [(taken, None)]
    assert [row[2] for row in desk.rows()] == [1]
    assert desk.suspended() == [1]
    assert waits.suspend(desk.connection, [taken], "other") == [], "its owner may"


def test_an_event_that_is_claimed_for_another_record_turns_out_to_be_a_duplicate(desk: Desk, waits: Waits) -> None:
    item = desk.item("a", 1)
    copy = replace(item, held=replace(item.held, partition=2), offset=9)
    desk.claim(copy, "other")
    assert waits.suspend(desk.connection, [item], "me") == [(item, Skipped("duplicate"))]
    assert desk.rows() == []


def test_a_worker_that_takes_a_claim_over_and_one_that_puts_it_off_never_both_have_it(desk: Desk, waits: Waits) -> None:
    """Whoever is first: the other one sees it. Both at the same time, many times over."""

    def take_over(settings: Settings, offsets: list[int]) -> dict[int, bool]:
        with postgres.connect(settings) as mine:
            sql = "UPDATE step SET owner = 'other' WHERE \"offset\" = %s RETURNING suspended"
            return {offset: mine.execute(sql, (offset,)).fetchall()[0][0] for offset in offsets}

    items = [desk.claim(desk.item("k", offset), "me") for offset in range(200)]
    with ThreadPoolExecutor(1) as other:
        taken = other.submit(take_over, desk.settings, list(range(199, -1, -1)))
        refused = {item.record.offset for one in items for item, _ in waits.suspend(desk.connection, [one], "me")}
        suspended = {offset for offset, found in taken.result(30).items() if found}
    assert refused | suspended == set(range(200))
    assert refused & suspended == set()
    assert {row[2] for row in desk.rows()} == suspended


def test_without_claims_the_latest_worker_puts_it_off(desk: Desk, farandole_settings: Settings) -> None:
    waits = Waits(farandole_settings.model_copy(update={"claims": False}), desk.agent)
    item = desk.item("a", 1)
    assert waits.suspend(desk.connection, [item, replace(item)], "one") == [], "the same event twice is one wait"
    assert waits.suspend(desk.connection, [item], "two") == []
    assert len(desk.rows()) == 1


def test_a_handling_that_is_put_off_again_goes_on_in_the_same_row(desk: Desk, waits: Waits) -> None:
    item = desk.claim(desk.item("a", 1), "me")
    waits.suspend(desk.connection, [item], "me")
    desk.connection.execute("UPDATE wait SET woken_at = now(), wakes = 1, look_at = now()")
    again = desk.claim(desk.woken(item, (0, 0), Suspended(5.0, "first", 2)), "me")
    waits.suspend(desk.connection, [again], "me")
    assert desk.rows("seq, attempts, error, topic, woken_at, look_at, wakes") == [
        (2, 2, "first", "jobs.heard", None, None, 0)
    ]
    waits.settle(desk.connection, [desk.woken(item, (0, 0))])
    assert len(desk.rows()) == 1, "an earlier number does not end the wait"
    waits.suspend(desk.connection, [item], "me")
    assert desk.rows("seq") == [(2,)], "nor does an earlier suspension begin it anew"
    waits.settle(desk.connection, [desk.woken(item, (0, 1), seq=2)])
    assert desk.rows() == []


def test_what_ends_a_wait_and_what_does_not(desk: Desk, waits: Waits) -> None:
    item = desk.item("a", 1)
    over: list[Outcome] = [Emitted(), DeadLettered("attempts", ""), Skipped("not_read")]
    not_over: list[Outcome] = [Skipped("duplicate"), Skipped("suspended"), Suspended(1.0)]
    found = ended([desk.woken(item, (0, 0), outcome) for outcome in (*over, *not_over)])
    assert [each.outcome for each in found] == over
    assert ended([item, desk.woken(item, (0, 0), seq=0)]) == [], "no wake, or a redrive, which has no row"


def test_a_wake_that_this_version_cannot_read_ends_its_wait_all_the_same(desk: Desk, waits: Waits) -> None:
    items = [desk.claim(desk.item("a", offset), "me") for offset in (1, 2)]
    waits.suspend(desk.connection, items, "me")
    unread = replace(desk.woken(items[0], (0, 0), DeadLettered("undecodable", "")), fields=None)
    waits.settle(desk.connection, [unread])
    assert [row[2] for row in desk.rows()] == [2]


def test_a_redriven_event_waits_beside_the_earlier_run(desk: Desk, waits: Waits) -> None:
    first = desk.claim(desk.item("a", 1), "me")
    second = desk.claim(desk.item("a", 1, run=1), "me")
    waits.suspend(desk.connection, [first, second], "me")
    assert len(desk.rows()) == 2
    waits.settle(desk.connection, [desk.woken(second, (0, 0))])
    assert desk.rows("run") == [(0,)]


def test_keys_of_any_size_are_put_off_and_held(desk: Desk, held: Waits) -> None:
    """An index over the key itself would refuse one of more than 2,704 bytes."""
    key = "k" * 100_000
    held.suspend(desk.connection, [desk.claim(desk.item(key, 1), "me")], "me")
    later = desk.item(key, 2)
    assert held.behind(desk.connection, [later]) == [later]


def test_with_hold_later_events_of_a_key_stand_behind_and_no_others(desk: Desk, held: Waits, waits: Waits) -> None:
    held.suspend(desk.connection, [desk.claim(desk.item("a", 5), "me")], "me")
    later, other, earlier = desk.item("a", 6), desk.item("b", 7), desk.item("a", 4)
    itself, keyless = desk.item("a", 5), desk.item(None, 8)
    assert held.behind(desk.connection, [itself, later, other, earlier, keyless]) == [later]
    assert waits.behind(desk.connection, [later]) == [], "an agent without hold looks at nothing"
    assert put_behind(later) == Suspended(0.0, kind="behind", attempts=0)
    assert put_behind(desk.woken(later, (0, 0))) == Suspended(0.0, kind="behind", attempts=1)


def stand_behind(desk: Desk, held: Waits, *offsets: int) -> None:
    items = [desk.claim(desk.item("a", offset, 0.0, kind="behind", attempts=0), "me") for offset in offsets]
    assert held.suspend(desk.connection, items, "me") == []


def test_those_who_stand_behind_are_released_one_by_one_in_the_order_of_the_log(desk: Desk, held: Waits) -> None:
    first = desk.claim(desk.item("a", 1), "me")
    held.suspend(desk.connection, [first], "me")
    stand_behind(desk, held, 3, 2)
    stand_behind(desk, held, 4)
    assert desk.rows('"offset", due IS NULL') == [(1, False), (2, True), (3, True), (4, True)]
    for offset in (1, 2, 3):
        held.settle(desk.connection, [desk.woken(desk.item("a", offset), (0, offset))])
        assert desk.rows('"offset", due <= now()') == [
            (later, True if later == offset + 1 else None) for later in range(offset + 1, 5)
        ]


def test_one_that_comes_to_stand_behind_nobody_is_due_at_once(desk: Desk, held: Waits) -> None:
    stand_behind(desk, held, 6, 5)
    assert desk.rows('"offset", due <= now()') == [(5, True), (6, None)]


def test_an_end_and_a_newcomer_behind_it_never_miss_each_other(desk: Desk, held: Waits) -> None:
    """The newcomer's transaction is held open while the earlier wait is settled: the settling waits, then releases it."""
    first = desk.claim(desk.item("a", 1), "me")
    held.suspend(desk.connection, [first], "me")
    with postgres.connect(desk.settings) as other, other.transaction():
        newcomer = Desk(desk.settings, other)
        stand_behind(newcomer, held, 2)
        settling = threading.Thread(target=held.settle, args=(desk.connection, [desk.woken(first, (0, 0))]))
        settling.start()
        blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%settle%'"
        with postgres.connect(desk.settings) as look:
            eventually(lambda: look.execute(blocked).fetchone() == (1,), "the settling waits for the newcomer")
    settling.join(10)
    assert desk.rows('"offset", due <= now()') == [(2, True)]
