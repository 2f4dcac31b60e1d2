"""A worker shows itself while it lives, leaves no row when it leaves well, and its reason when it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from farandole import migrate, postgres
from farandole.errors import Stopped
from farandole.outcome import DeadLettered, Emitted, Skipped
from farandole.settings import Settings
from farandole.worker import beat
from farandole.worker.beat import Beat
from farandole.worker.vitals import Signs, Vitals
from tests.eventually import eventually
from tests.integration.worker.words import Said


@pytest.fixture(autouse=True)
def fast(farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate.migrate(farandole_settings)
    monkeypatch.setattr(beat, "EVERY", 0.02)


def rows(settings: Settings) -> list[tuple[Any, ...]]:
    with postgres.connect(settings) as connection:
        found = connection.execute("SELECT agent, slot, vitals, now() - beat_at, pid FROM worker ORDER BY agent, slot")
        return found.fetchall()


def told_by(signs: Signs) -> Callable[[], Vitals]:
    return lambda: signs.vitals(in_flight=3, queued=2, uncommitted=1, paused=0, held=6)


async def until(look: Callable[[], object], what: str) -> None:
    """`eventually`, while the event loop runs on."""
    await asyncio.to_thread(eventually, look, what)


async def test_a_worker_that_lives_shows_what_it_does(farandole_settings: Settings) -> None:
    signs = Signs()
    async with Beat(farandole_settings, "echo", 0, told_by(signs)):
        await until(lambda: rows(farandole_settings), "the first beat")
        signs.settled(Emitted([Said(word="a"), Said(word="b")]))
        signs.settled(DeadLettered("rejected", "never \x00\udc80"))
        signs.settled(Skipped("duplicate"))

        def counted() -> Any:
            vitals = rows(farandole_settings)[0][2]
            return vitals if vitals["counts"].get("events") == 2 and vitals["rates"]["handled"] > 0 else None

        await until(counted, "what was settled is told")
        told = counted()
        assert told["counts"] == {"Emitted": 1, "events": 2, "DeadLettered": 1, "duplicate": 1}
        assert (told["state"], told["reason"], told["in_flight"], told["held"]) == ("running", None, 3, 6)
        assert told["last_error"] == "rejected: never \\x00\\udc80"
        assert told["rates"]["emitted"] == pytest.approx(told["rates"]["handled"], rel=0.01)
    assert rows(farandole_settings) == []


async def test_a_worker_that_ends_by_itself_leaves_its_reason(farandole_settings: Settings) -> None:
    with pytest.raises(Stopped):
        async with Beat(farandole_settings, "echo", 0, told_by(Signs())):
            await until(lambda: rows(farandole_settings), "the first beat")
            raise Stopped("gap: nothing fits")
    [(_, _, vitals, _, _)] = rows(farandole_settings)
    assert (vitals["state"], vitals["reason"], vitals["in_flight"]) == ("stopped", "gap: nothing fits", 0)


async def test_a_successor_in_the_slot_is_not_removed_with_its_predecessor(
    farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beat, "EVERY", 60.0)
    async with Beat(farandole_settings, "echo", 0, told_by(Signs())):
        await until(lambda: rows(farandole_settings), "the first beat")
        with postgres.connect(farandole_settings) as connection:
            connection.execute("UPDATE worker SET pid = -1")
    assert [row[4] for row in rows(farandole_settings)] == [-1]


async def test_rows_of_long_ago_are_forgotten_at_a_start(farandole_settings: Settings) -> None:
    with postgres.connect(farandole_settings) as connection:
        connection.execute(
            "INSERT INTO worker (agent, slot, host, pid, started_at, beat_at, vitals) VALUES"
            " ('old', 0, 'h', 1, now(), now() - interval '25 hours', '{}'),"
            " ('young', 0, 'h', 1, now(), now() - interval '23 hours', '{}')"
        )
    async with Beat(farandole_settings, "echo", 0, told_by(Signs())):
        await until(lambda: [row[0] for row in rows(farandole_settings)] == ["echo", "young"], "the old one is gone")


async def test_a_database_that_is_away_neither_stops_the_worker_nor_holds_it_up(farandole_settings: Settings) -> None:
    nowhere = SecretStr("postgresql://nobody@127.0.0.1:1/nothing")
    calls = 0

    def vitals() -> Vitals:
        nonlocal calls
        calls += 1
        return told_by(Signs())()

    async with Beat(farandole_settings.model_copy(update={"database_url": nowhere}), "echo", 0, vitals):
        await until(lambda: calls > 3, "it tries again and again")


async def test_a_connection_that_was_cut_is_made_anew(farandole_settings: Settings) -> None:
    async with Beat(farandole_settings, "echo", 0, told_by(Signs())):
        await until(lambda: rows(farandole_settings), "the first beat")
        with postgres.connect(farandole_settings) as connection:
            cut = (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'farandole echo beat'"
            )
            connection.execute(cut)
            connection.execute("DELETE FROM worker")
        await until(lambda: rows(farandole_settings), "it beats again")


async def test_the_end_does_not_wait_for_a_locked_table(
    farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beat, "FAREWELL", 0.05)
    with postgres.connect(farandole_settings, autocommit=False) as holder:
        holder.execute("LOCK TABLE worker IN ACCESS EXCLUSIVE MODE")
        async with Beat(farandole_settings, "echo", 0, told_by(Signs())):
            await asyncio.sleep(0)


async def test_why_it_stands_still_is_told() -> None:
    signs = Signs(draining=True)
    assert told_by(signs)().state == "draining"
    signs.braked = "50 dead letters in a row"
    assert (told_by(signs)().state, told_by(signs)().reason) == ("braked", "50 dead letters in a row")
    signs.outage(ConnectionError("gone"))
    assert (told_by(signs)().state, told_by(signs)().reason) == ("waiting", "ConnectionError: gone")
