"""Limits that several processes share: one's 429 holds all, one probe at a time, and nothing is left behind."""

from __future__ import annotations

import asyncio
import logging

import pytest

from farandole.models.configured import Limit
from farandole.models.errors import ModelError, Overloaded, RateLimited, ServerFailed
from farandole.models.values import Heard, Usage
from farandole.pace.shared import SharedPace
from tests.integration.pace.conftest import MODEL, Office, request, until

OK = Heard(200)


class Caller:
    """A worker that calls: what it called, in order, goes to `calls`."""

    def __init__(self, pace: SharedPace, calls: list[float], office: Office) -> None:
        self.pace, self.calls, self.office = pace, calls, office

    async def call(self, error: ModelError | None = None) -> None:
        async with self.pace.turn(request()) as turn:
            self.calls.append(self.office.ahead)
            if error:
                turn.failed(error)
            else:
                turn.answered(Usage(10, 10), OK)


@pytest.mark.parametrize("limit", [None, Limit(requests=6000)])
async def test_a_retry_after_holds_every_worker(office: Office, limit: Limit | None) -> None:
    """Case M3: 429 with retry-after 171, three workers; nobody calls before. The database's clock is put on."""
    calls: list[float] = []
    workers = [Caller(await office.pace(limit), calls, office) for _ in range(3)]
    for worker in workers:
        await worker.call()
    await workers[0].call(RateLimited("slow down", after=171.0))
    await until(lambda: office.row("closed_until > now() + interval '160 seconds'")[0], "the database knows")
    await until(lambda: all(worker.pace._lane(MODEL).view.stale for worker in workers), "what they saw is a second old")
    calls.clear()
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker.call())
        await until(lambda: all(worker.pace.paused for worker in workers), "all three have seen it")
        assert str(workers[1].pace.paused).startswith(f"{MODEL}: rate limited, 1")
        office.ahead = 168.0
        await until(lambda: all(_seconds(worker.pace) < 5 for worker in workers), "all three have looked again")
        assert calls == []
        office.ahead = 172.0
    assert calls == [172.0] * 3
    assert [worker.pace.paused for worker in workers] == [None] * 3


def _seconds(pace: SharedPace) -> float:
    return float(str(pace.paused).rsplit(", ", 1)[1].split()[0]) if pace.paused else 999.0


async def test_a_limit_with_nothing_left_holds_until_it_is_full_again(office: Office) -> None:
    one, other = await office.pace(Limit(requests=6000)), await office.pace(Limit(requests=6000))
    empty = {
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2099-01-01T00:00:00Z",
    }
    async with one.turn(request()) as turn:
        turn.answered(Usage(1, 1), Heard(200, empty))
    assert "no more of a limit is left" in str(one.paused), "this process knows at once"
    waiting = asyncio.create_task(_enter(other))
    await until(lambda: other.paused, "the other one was told")
    waiting.cancel()
    await asyncio.wait([waiting])


async def _enter(pace: SharedPace) -> None:
    async with pace.turn(request()) as turn:
        turn.answered(Usage(1, 1), OK)


async def test_the_brake_lets_one_probe_call_for_all(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "farandole.pace")
    calls: list[float] = []
    workers = [Caller(await office.pace(), calls, office) for _ in range(3)]
    await workers[0].call(Overloaded("529"))
    await until(lambda: office.row("level")[0] == 1, "the brake is on")
    await until(lambda: workers[0].pace.paused, "the answer has come back to whoever told")
    under_way = 0
    free = asyncio.Event()

    async def probe(pace: SharedPace) -> None:
        nonlocal under_way
        async with pace.turn(request()) as turn:
            under_way += 1
            await free.wait()
            turn.answered(Usage(1, 1), OK)

    office.ahead = 2.0
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            for _ in range(3):
                group.create_task(probe(worker.pace))
        await until(lambda: under_way, "a probe")
        await until(lambda: all(worker.pace.paused for worker in workers[1:]), "the others wait for it")
        assert under_way == 1
        free.set()
    assert under_way == 9
    assert office.row("level, failures, probe_owner") == (0, 0, None)
    said = [record.getMessage() for record in caplog.records if record.name == "farandole.pace"]
    assert sum(line.startswith("open") for line in said) == sum(line.startswith("closed") for line in said) >= 1


async def test_five_failures_in_a_row_open_the_breaker_and_a_probe_that_fails_does_not_count(office: Office) -> None:
    one, other = [await office.pace(Limit(requests=60_000)) for _ in range(2)]
    for pace in (one, other, one, other, one):
        async with pace.turn(request()) as turn:
            turn.failed(error := ServerFailed("500"))
        assert error.counted
    await until(lambda: office.row("level")[0] == 1, "the breaker is open")
    office.ahead += 2.0
    async with other.turn(request()) as turn:
        turn.failed(error := ServerFailed("500"))
    assert not error.counted
    await until(lambda: office.row("level")[0] == 2, "the next probe comes later")
    assert "failing (server_error)" in str(other.paused)
    office.ahead += 4.0
    async with one.turn(request()) as turn:
        turn.answered(Usage(1, 1), OK)
    await until(lambda: office.row("level")[0] == 0, "a success closes it")


async def test_a_success_between_failures_keeps_the_breaker_closed(office: Office) -> None:
    pace = await office.pace(Limit(requests=60_000))
    for _ in range(4):
        for failing in (True, True, False):
            async with pace.turn(request()) as turn:
                if failing:
                    turn.failed(ServerFailed("500"))
                else:
                    turn.answered(Usage(1, 1), OK)
    async with pace.turn(request()):
        pass
    assert office.row("level, failures") == (0, 0)


async def test_a_cancelled_waiter_leaves_nothing_behind(office: Office) -> None:
    pace = await office.pace(Limit(requests=6000, concurrency=1))
    async with pace.turn(request()) as turn:
        waiting = asyncio.create_task(_enter(pace))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        turn.answered(Usage(1, 1), OK)
    await asyncio.wait_for(_enter(pace), 10)


async def test_a_cancelled_probe_leaves_its_place_to_another(office: Office) -> None:
    one, other = await office.pace(), await office.pace()
    async with one.turn(request()) as turn:
        turn.failed(Overloaded("529"))
    await until(lambda: office.row("level")[0] == 1, "the brake is on")
    office.ahead += 2.0
    entered = asyncio.Event()

    async def hang() -> None:
        async with one.turn(request()):
            entered.set()
            await asyncio.Event().wait()

    probe = asyncio.create_task(hang())
    await asyncio.wait_for(entered.wait(), 20)
    probe.cancel()
    await asyncio.wait([probe])
    await asyncio.wait_for(_enter(other), 20)


async def test_no_more_calls_at_once_than_a_process_may_make(office: Office) -> None:
    pace = await office.pace(Limit(concurrency=2))
    at_once, most = 0, 0

    async def call() -> None:
        nonlocal at_once, most
        async with pace.turn(request()) as turn:
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1
            turn.answered(Usage(1, 1), OK)

    await asyncio.gather(*(call() for _ in range(20)))
    assert most == 2


async def test_another_model_is_not_held(office: Office) -> None:
    pace = await office.pace()
    async with pace.turn(request()) as turn:
        turn.failed(RateLimited("slow down", after=100.0))
    async with asyncio.timeout(20), pace.turn(request("claude-sonnet-5-5")) as turn:
        turn.answered(Usage(1, 1), OK)
    assert str(pace.paused).startswith(MODEL)
