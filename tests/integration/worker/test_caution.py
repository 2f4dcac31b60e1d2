"""What a worker does about records that may kill it, with a real Postgres: handles them alone, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from farandole import migrate, postgres
from farandole.kafka import Record
from farandole.outcome import DeadLettered, Emitted, Outcome
from farandole.settings import Settings
from farandole.worker.caution import Caution
from farandole.worker.holdings import Held, Item
from farandole.worker.isolation import Isolation
from farandole.worker.lifelines import DEATHS, KILLS, Lifelines
from farandole.worker.tracker import Tracker
from tests.eventually import eventually

PLACE = ("jobs.heard", 0)


@pytest.fixture
def connection(farandole_settings: Settings) -> Iterator[postgres.Connection[Any]]:
    migrate.migrate(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


def item(held: Held, offset: int) -> Item:
    return Item(Record(held.topic, held.partition, offset, 0, b"k", b"v", []), held, offset)


def held(position: int = 7) -> Held:
    return Held(*PLACE, Tracker(position), (position, []))


class Life:
    """A worker's life: its caution, and what happens in it."""

    def __init__(self, connection: postgres.Connection[Any], name: str) -> None:
        self.lifelines = Lifelines("echo", name, 10)
        self.isolation = Isolation()
        self.finished: list[Item] = []
        self.caution = Caution(self.lifelines, self.isolation, str, self.run)
        self._connection = connection
        self._one = asyncio.Lock()

    async def run(self, work: Callable[[postgres.Connection[Any]], Any]) -> Any:
        async with self._one:
            return await asyncio.to_thread(work, self._connection)

    def start(self, item: Item, outcome: Outcome | None = None) -> asyncio.Task[None]:
        async def handle() -> Outcome:
            return outcome or Emitted()

        return asyncio.create_task(self.caution.handle(item, handle, self.finished.append))

    async def until(self, look: Callable[[], object]) -> None:
        await asyncio.to_thread(eventually, look)


def suspicious(connection: postgres.Connection[Any], *, kills: int = 0, offset: int = 7) -> None:
    """Workers have died over the partition, `kills` of them over that record alone."""
    for number in range(DEATHS + kills):
        lifelines = Lifelines("echo", f"dead {number}", 10)
        lifelines.take(connection, {PLACE: 7})
        if number >= DEATHS:
            lifelines.alone(connection, *PLACE, offset)


def line(connection: postgres.Connection[Any]) -> Any:
    return connection.execute("SELECT owner, suspect, alone, kills FROM lifeline").fetchone()


async def test_records_without_suspicion_are_handled_beside_each_other(connection: postgres.Connection[Any]) -> None:
    life, mine = Life(connection, "new"), held()
    items = [item(mine, offset) for offset in (7, 8)]
    await life.caution.meet(items)
    async with life.isolation.together():
        await asyncio.gather(*map(life.start, items))
    assert life.finished == items


async def test_a_suspect_is_alone_until_it_is_committed(connection: postgres.Connection[Any]) -> None:
    suspicious(connection)
    life, mine = Life(connection, "new"), held()
    first, second = item(mine, 7), item(mine, 8)
    await life.caution.meet([first, second])
    tasks = [life.start(first), life.start(second)]
    await life.until(lambda: life.finished)
    assert life.finished == [first] and life.isolation.wanted
    assert line(connection) == ("new", 7, True, 0)
    life.caution.committed([first])
    await life.until(lambda: len(life.finished) == 2)
    life.caution.committed([second])
    await asyncio.gather(*tasks)
    assert line(connection) == ("new", None, False, 0)
    assert not life.isolation.wanted


async def test_what_lies_past_the_suspicion_is_handled_beside_others(connection: postgres.Connection[Any]) -> None:
    suspicious(connection)
    life, mine = Life(connection, "new"), held()
    past = item(mine, 7 + 20)
    await life.caution.meet([past])
    await life.start(past)
    assert line(connection) == ("new", None, False, 0)


async def test_a_record_over_which_three_have_died_is_not_handled(connection: postgres.Connection[Any]) -> None:
    suspicious(connection, kills=KILLS, offset=9)
    life, mine = Life(connection, "new"), held()
    killer = item(mine, 9)
    await life.caution.meet([killer])
    task = life.start(killer, Emitted())
    await life.until(lambda: life.finished)
    assert killer.outcome == DeadLettered("killed", "")
    life.caution.committed([killer])
    await task


async def test_a_drain_waits_for_no_commit_and_is_no_kill(connection: postgres.Connection[Any]) -> None:
    suspicious(connection, kills=2)
    life, mine = Life(connection, "new"), held()
    first = item(mine, 7)
    await life.caution.meet([first])
    task = life.start(first)
    await life.until(lambda: life.finished)
    life.caution.leave()
    await task
    await life.caution.close()
    assert line(connection) == (None, 7, False, 2)
    mine.leaving = mine.lost = True
    life.caution.look()
    assert line(connection) == (None, 7, False, 2)


async def test_a_partition_that_goes_takes_its_suspect_with_it_and_is_let_go(
    connection: postgres.Connection[Any],
) -> None:
    suspicious(connection)
    life, mine = Life(connection, "new"), held()
    first, second = item(mine, 7), item(mine, 8)
    await life.caution.meet([first, second])
    tasks = [life.start(first), life.start(second)]
    await life.until(lambda: life.finished)
    mine.leaving = mine.lost = True
    life.caution.look()
    await asyncio.gather(*tasks)
    assert life.finished == [first], "the second one was not begun"
    await life.until(lambda: line(connection)[0] is None)
    assert not life.isolation.wanted


async def test_a_record_of_a_partition_that_another_worker_has_is_not_handled(
    connection: postgres.Connection[Any],
) -> None:
    suspicious(connection)
    life, mine = Life(connection, "frozen"), held()
    first = item(mine, 7)
    await life.caution.meet([first])
    Lifelines("echo", "next", 10).take(connection, {PLACE: 7})
    await life.start(first)
    assert life.finished == [] and first.outcome is None
