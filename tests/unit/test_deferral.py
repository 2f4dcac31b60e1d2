"""Events of a key that is being put off (order="hold"), with the database's answers given when the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from farandole import Agent
from farandole.kafka import Record
from farandole.outcome import Emitted, Skipped, Suspended
from farandole.settings import Settings
from farandole.worker.deferral import Deferral
from farandole.worker.flight import Flight
from farandole.worker.holdings import Held, Item
from farandole.worker.ledger import Ledger, SlotLost
from farandole.worker.tracker import Tracker
from farandole.worker.waits import Waits, put_behind

HELD = Held("jobs.asked", 0, Tracker(0), (0, []))


def item(offset: int, key: bytes = b"k") -> Item:
    fields = {"event_id": f"00000000-0000-0000-0000-{offset:012}", "run": 0}
    return Item(Record("jobs.asked", 0, offset, 0, key, b"v", []), HELD, offset, fields=fields)


class Bench:
    """A deferral whose statements are answered by hand, in the order in which they were asked."""

    def __init__(self, **options: Any) -> None:
        self.asked: list[asyncio.Future[Any]] = []
        self.committed: list[Item] = []
        waits = Waits(Settings(), Agent("a", **options))
        ledger = cast(Ledger, SimpleNamespace(run=None, owner="me"))
        self.deferral = Deferral(waits, ledger, self._blocking, self.committed.extend, lambda: None)

    def _blocking(self, *_: Any) -> asyncio.Future[Any]:
        self.asked.append(asyncio.get_running_loop().create_future())
        return self.asked[-1]

    async def answer(self, found: Any) -> None:
        while not self.asked:  # noqa: ASYNC110  what it waits for is asked on this loop
            await asyncio.sleep(0)
        self.asked.pop(0).set_result(found)

    async def flush(self, found: Any) -> None:
        under_way = asyncio.create_task(self.deferral.flush())
        await self.answer(found)
        await under_way


async def test_what_was_claimed_before_the_row_was_written_and_comes_while_it_is_stands_behind() -> None:
    bench, first, second, other = Bench(order="hold"), item(1), item(2), item(3, b"other")
    bench.deferral.holds.claiming()
    claimed = asyncio.create_task(bench.deferral.claimed([second, other]))
    await bench.answer([])  # there is no row yet
    await claimed
    first.outcome = Suspended(60.0)
    bench.deferral.put_off([first])
    bench.deferral.hold_back([second, other])
    assert second.outcome == Suspended(0.0, attempts=0, kind="behind")
    assert other.outcome is None


async def test_what_is_handed_over_after_the_row_was_written_but_was_claimed_before_stands_behind() -> None:
    bench, first, second, third = Bench(order="hold"), item(1), item(2), item(3)
    bench.deferral.holds.claiming()
    first.outcome = Suspended(60.0)
    bench.deferral.put_off([first])
    await bench.flush([])
    assert bench.committed == [first]
    bench.deferral.hold_back([second])
    assert isinstance(second.outcome, Suspended)
    bench.deferral.put_off([second])
    bench.deferral.holds.handed_over()
    await bench.flush([])
    bench.deferral.hold_back([third])
    assert third.outcome is None, "its claim has seen the rows"


async def test_only_what_is_durable_is_committed() -> None:
    bench, mine, taken, duplicate = Bench(), item(1), item(2), item(3)
    taken.held = Held("jobs.asked", 1, Tracker(0), (0, []))
    for one in (mine, taken, duplicate):
        one.outcome = Suspended(60.0)
    bench.deferral.put_off([mine, taken, duplicate])
    assert bench.committed == []
    under_way = asyncio.create_task(bench.deferral.flush())
    while not bench.asked:  # noqa: ASYNC110  what it waits for is asked on this loop
        await asyncio.sleep(0)
    taken.held.lost = True
    await bench.answer([(taken, None), (duplicate, Skipped("duplicate"))])
    await under_way
    assert bench.committed == [mine, duplicate]
    assert duplicate.outcome == Skipped("duplicate")


async def test_a_claim_that_is_another_worker_s_though_the_partition_is_held_makes_the_worker_begin_anew() -> None:
    bench, taken = Bench(), item(1)
    taken.outcome = Suspended(60.0)
    bench.deferral.put_off([taken])
    under_way = asyncio.create_task(bench.deferral.flush())
    await bench.answer([(taken, None)])
    with pytest.raises(SlotLost, match=r"the claim of jobs\.asked \[0\] 1 is another worker's"):
        await under_way
    assert bench.committed == []


async def test_in_the_lane_of_an_event_that_is_put_off_all_others_are_put_off_at_once() -> None:
    bench, handled = Bench(order="hold"), list[int]()
    items = [item(offset) for offset in range(4)]

    async def handle(one: Item) -> bool:
        await asyncio.sleep(0)
        handled.append(one.offset)
        one.outcome = Suspended(60.0) if one.offset == 1 else Emitted()
        return bench.deferral.holds_lane(one)

    def put_off(one: Item) -> None:
        one.outcome = put_behind(one)

    flight = Flight(handle, 1, put_off)
    flight.admit(items)
    await flying(flight, lambda: items[3].outcome is not None)
    assert handled == [0, 1]
    assert [one.outcome.kind for one in items[1:] if isinstance(one.outcome, Suspended)] == [
        "retry",
        "behind",
        "behind",
    ]
    assert (flight.queued, flight.ready) == (0, 0)


async def flying(flight: Flight, done: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while flight.running or not done():  # noqa: ASYNC110  a test looks in from outside
            await asyncio.sleep(0)


async def test_an_event_is_put_off_only_after_what_is_finished_of_its_key_is_committed() -> None:
    bench, first, second, other = Bench(order="hold"), item(1), item(2), item(3, b"other")
    first.outcome = Emitted()
    bench.deferral.finished([first])
    second.outcome = other.outcome = Suspended(60.0)
    bench.deferral.put_off([second, other])
    await bench.flush([])
    assert bench.committed == [other]
    bench.deferral.settled([first])
    await bench.flush([])
    assert bench.committed == [other, second]
