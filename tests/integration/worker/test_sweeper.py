"""What is due is woken, once and on time, whatever is away; and what a crash left is found by the committed offsets."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from farandole import Agent, migrate, postgres, topics
from farandole.errors import Stopped
from farandole.kafka import Record
from farandole.outage import Outage
from farandole.postgres import Connection
from farandole.settings import Settings
from farandole.stack.stack import Stack
from farandole.wake import Wake, unwrap
from farandole.worker.sweeper import Left, Sweeper
from farandole.worker.waits import Waits
from tests.eventually import eventually
from tests.integration.worker.waiting import Desk
from tests.integration.worker.words import Heard
from tests.kafka_log import KafkaLog


def agent_of(**options: Any) -> Agent:
    agent = Agent("echo", **options)

    @agent.handle
    async def echo(event: Heard) -> None: ...

    return agent


class Sweeping:
    """Sweepers of one agent in threads of their own, each with an event loop, as workers have them."""

    def __init__(self, settings: Settings, agent: Agent) -> None:
        self.settings = settings
        self.agent = agent
        self.waits = Waits(settings, agent)
        self.log = KafkaLog(settings.brokers, settings.namespace)

    @contextmanager
    def sweeper(self, limit: float = 120.0) -> Iterator[list[BaseException]]:
        """One sweeper; the block gets what it failed with. It ends, and promptly, with the block."""
        failures: list[BaseException] = []
        loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()

        async def main() -> None:
            sweeper = Sweeper(self.settings, self.agent, self.waits, lambda: Outage("agent echo", limit))
            ready.set()
            await sweeper.run(stop)

        def run() -> None:
            try:
                loop.run_until_complete(main())
            except BaseException as failure:  # noqa: BLE001  looked at by the test
                failures.append(failure)
            finally:
                loop.close()

        thread = threading.Thread(target=run)
        thread.start()
        ready.wait(10)
        try:
            yield failures
        finally:
            if thread.is_alive():
                loop.call_soon_threadsafe(stop.set)
            thread.join(20)
            assert not thread.is_alive(), "a sweeper leaves when it is asked to"

    def wakes(self) -> list[tuple[int, int]]:
        """Offset of the origin and number of each wake, in the order of the log."""
        return [(wake.origin.offset, wake.seq) for _, wake, _ in self.unwrapped()]

    def unwrapped(self) -> list[tuple[Record, Wake, tuple[int, int]]]:
        """Each wake: the record as it was, what is known of it, and where it lies in the wake topic."""
        found = []
        for logged in self.log.read("echo.wake"):
            lies = (logged.partition, logged.offset)
            sent = Record("echo.wake", *lies, 0, logged.key, logged.value, logged.headers)
            record, wake = unwrap(sent, self.settings.topic)
            assert wake is not None
            found.append((record, wake, lies))
        return found

    def commit(self, partition: int, offset: int) -> None:
        """What the worker's group commits, by hand."""
        place = TopicPartition(self.settings.topic("echo.wake"), partition, offset)
        asked = [ConsumerGroupTopicPartitions(self.settings.group("echo"), [place])]
        for future in self.log.admin.alter_consumer_group_offsets(asked).values():
            future.result(20)


Prepare = Callable[[Settings], tuple[Sweeping, Desk]]


@pytest.fixture
def prepare() -> Iterator[Prepare]:
    connections: list[Connection[Any]] = []

    def made(settings: Settings) -> tuple[Sweeping, Desk]:
        agent = agent_of()
        migrate.migrate(settings)
        topics.ensure(settings, topics.of_agents(settings, [agent]))
        connections.append(postgres.connect(settings))
        return Sweeping(settings, agent), Desk(settings, connections[-1], agent)

    yield made
    for connection in connections:
        connection.close()


@pytest.fixture
def sweeping(farandole_settings: Settings, prepare: Prepare) -> tuple[Sweeping, Desk]:
    return prepare(farandole_settings)


def put_off(sweeping: Sweeping, desk: Desk, offsets: range, after: float = 0.0, **given: Any) -> None:
    items = [desk.claim(desk.item(f"k{offset}", offset, after, **given), "me") for offset in offsets]
    assert sweeping.waits.suspend(desk.connection, items, "me") == []


def all_woken(desk: Desk) -> bool:
    return desk.rows("woken_at")[:] != [] and all(row[0] for row in desk.rows("woken_at"))


def test_what_is_due_comes_back_as_it_was_with_what_is_known_of_it(sweeping: tuple[Sweeping, Desk]) -> None:
    sweeps, desk = sweeping
    odd: list[tuple[str, bytes | None]] = [("a", None), ("a", b"\xff"), ("", b"x")]
    put_off(sweeps, desk, range(7, 8), headers=odd, value=b"\x00\xff", attempts=3, error="Error: \n‽ \0", run=2)
    with sweeps.sweeper():
        eventually(lambda: all_woken(desk), "woken")
    [(record, wake, lies)] = sweeps.unwrapped()
    assert (record.key, record.value, record.headers) == (b"k7", b"\x00\xff", odd)
    assert (wake.seq, wake.run, wake.attempts, wake.error) == (1, 2, 3, "Error: \n‽ \\0")
    assert dataclasses.astuple(wake.origin) == ("jobs.heard", 0, 7, 1_700_000_000_000)
    [row] = desk.rows("wakes, wake_partition, wake_offset, look_at > now()")
    assert row == (1, *lies, True)


def test_what_is_not_due_sleeps_on_and_is_woken_when_it_is(sweeping: tuple[Sweeping, Desk]) -> None:
    """Case K8: each wait its own time; none before."""
    sweeps, desk = sweeping
    put_off(sweeps, desk, range(1), 3600.0)
    put_off(sweeps, desk, range(1, 2), 2.0)
    put_off(sweeps, desk, range(2, 3), 0.5)
    with sweeps.sweeper():
        eventually(lambda: len(sweeps.wakes()) == 2, "two are woken")
        early = desk.connection.execute("SELECT count(*) FROM wait WHERE woken_at < due").fetchone()
    assert early == (0,)
    assert desk.rows('"offset", woken_at IS NOT NULL') == [(0, False), (1, True), (2, True)]


def test_many_that_are_due_at_once_are_woken_once_each_by_several_sweepers(sweeping: tuple[Sweeping, Desk]) -> None:
    sweeps, desk = sweeping
    put_off(sweeps, desk, range(5000))
    with sweeps.sweeper(), sweeps.sweeper(), sweeps.sweeper():
        eventually(lambda: all_woken(desk), "all woken")
    assert sorted(sweeps.wakes()) == [(offset, 1) for offset in range(5000)]


def test_a_batch_is_bounded_in_bytes_and_one_of_any_size_is_woken(sweeping: tuple[Sweeping, Desk]) -> None:
    sweeps, desk = sweeping
    put_off(sweeps, desk, range(30), value=os.urandom(900_000))
    with sweeps.sweeper():
        eventually(lambda: all_woken(desk), "all woken", 60)
    assert sorted(sweeps.wakes()) == [(offset, 1) for offset in range(30)]
    together = desk.rows("count(*) OVER (PARTITION BY woken_at)")
    assert max(row[0] for row in together) <= 10, "8 MiB hold nine of them, and one more that begins below"


def test_a_sweeper_that_is_killed_leaves_its_waits_to_the_next(sweeping: tuple[Sweeping, Desk]) -> None:
    """A session that locked what is due, and vanished: as kill -9 at any line of the sweep."""
    sweeps, desk = sweeping
    put_off(sweeps, desk, range(10))
    victim = postgres.connect(desk.settings, autocommit=False)
    victim.execute("SELECT FROM wait WHERE due <= now() FOR NO KEY UPDATE")
    with sweeps.sweeper() as failures:
        eventually(lambda: _asked_in_vain(desk), "the sweeper looked and found all of it in other hands")
        assert sweeps.wakes() == []
        victim.close()
        eventually(lambda: all_woken(desk), "woken by the next")
        assert failures == []
    assert len(sweeps.wakes()) == 10


def _asked_in_vain(desk: Desk) -> bool:
    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'farandole echo sweeper' AND query LIKE 'COMMIT%'"
    found = desk.connection.execute(sql).fetchone()
    return found is not None and found[0] > 0


def test_a_frozen_sweeper_is_cut_off_and_its_waits_are_woken_by_another(sweeping: tuple[Sweeping, Desk]) -> None:
    """SIGSTOP in the middle of a sweep; the server ends the transaction after 15 s."""
    sweeps, desk = sweeping
    put_off(sweeps, desk, range(3))
    code = (
        "import pathlib, time\n"
        "from farandole import postgres\n"
        "from farandole.settings import load_settings\n"
        "from farandole.worker.sweeper import _SQL\n"
        "connection = postgres.connect(load_settings())\n"
        "connection.execute(_SQL['sweeper_session'])\n"
        "with connection.transaction():\n"
        "    connection.execute(_SQL['due'], {'agent': 'echo', 'rows': 10, 'bytes': 1000})\n"
        "    print('locked', flush=True)\n"
        "    time.sleep(600)\n"
    )
    from tests.commands import environment

    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment(desk.settings), stdout=subprocess.PIPE, text=True
    ) as frozen:
        assert frozen.stdout is not None
        assert frozen.stdout.readline() == "locked\n"
        frozen.send_signal(signal.SIGSTOP)
        try:
            with sweeps.sweeper() as failures:
                eventually(lambda: all_woken(desk), "woken by the other", 40)
                assert failures == []
        finally:
            frozen.kill()


def test_a_wake_that_was_handled_and_committed_but_not_settled_is_over(sweeping: tuple[Sweeping, Desk]) -> None:
    """The worker was killed between its commit and the settling. Beside it, one that is claimed and not committed."""
    sweeps, desk = sweeping
    put_off(sweeps, desk, range(2))
    with sweeps.sweeper():
        eventually(lambda: all_woken(desk), "woken")
        places = {
            offset: (partition, at) for offset, partition, at in desk.rows('"offset", wake_partition, wake_offset')
        }
        for offset, at in places.items():
            desk.claim(desk.woken(desk.item(f"k{offset}", offset), at), "me")
        done, open_one = places[0], places[1]
        sweeps.commit(done[0], done[1] + 1)
        if open_one[0] != done[0]:
            sweeps.commit(*open_one)
        desk.connection.execute("UPDATE wait SET look_at = now()")
        eventually(lambda: [row[0] for row in desk.rows('"offset"')] == [1], "the handled one is over")
        eventually(lambda: desk.rows("look_at > now()") == [(True,)], "the other is looked at later")
    assert sorted(sweeps.wakes()) == [(0, 1), (1, 1)]


def test_a_wake_that_is_not_in_its_topic_any_more_is_sent_again(sweeping: tuple[Sweeping, Desk]) -> None:
    sweeps, desk = sweeping
    put_off(sweeps, desk, range(1))
    with sweeps.sweeper():
        eventually(lambda: all_woken(desk), "woken")
        desk.connection.execute("UPDATE wait SET look_at = now(), wake_offset = 1000000")
        eventually(lambda: sweeps.wakes() == [(0, 1), (0, 2)], "woken again, under the next number")
    assert desk.rows("seq, wakes") == [(2, 2)]


def test_one_that_stands_behind_nobody_any_more_is_found(sweeping: tuple[Sweeping, Desk]) -> None:
    sweeps, desk = sweeping
    held = Waits(desk.settings, Agent("echo", order="hold"))
    first = desk.claim(desk.item("a", 1, 3600.0), "me")
    later = [desk.claim(desk.item("a", offset, 0.0, kind="behind"), "me") for offset in (2, 3)]
    held.suspend(desk.connection, [first, *later], "me")
    desk.connection.execute('DELETE FROM wait WHERE "offset" = 1')  # an end whose release was lost
    with sweeps.sweeper():
        desk.connection.execute("UPDATE wait SET look_at = now() WHERE due IS NULL")
        eventually(lambda: sweeps.wakes() == [(2, 1)], "the first of them is woken")
        eventually(lambda: desk.rows('"offset", look_at > now()')[1:] == [(3, True)], "the other stands behind it")
    assert sweeps.wakes() == [(2, 1)]


@pytest.mark.parametrize("away", ["kafka", "postgres"])
def test_waits_are_woken_after_an_outage_by_the_same_sweeper(
    away: str, farandole_outages: Stack, farandole_namespace: str, prepare: Prepare
) -> None:
    from farandole.settings import load_settings

    settings = load_settings(**dataclasses.asdict(farandole_outages.endpoints), namespace=farandole_namespace)
    sweeps, desk = prepare(settings)
    service: Any = getattr(farandole_outages, away)
    put_off(sweeps, desk, range(1))
    with sweeps.sweeper() as failures:
        eventually(lambda: all_woken(desk), "woken before the outage")
        put_off(sweeps, desk, range(1, 50), 1.5)
        service.kill()
        service.start()
        desk.connection.close()
        desk.connection = postgres.connect(settings)
        put_off(sweeps, desk, range(50, 60))
        eventually(lambda: {offset for offset, _ in sweeps.wakes()} == set(range(60)), "all are woken", 90)
        eventually(lambda: all_woken(desk), "and known to be", 60)
        assert failures == []


def test_an_outage_that_lasts_too_long_ends_the_sweeper_with_its_reason(sweeping: tuple[Sweeping, Desk]) -> None:
    sweeps, desk = sweeping
    sweeps.settings = desk.settings.model_copy(update={"kafka_bootstrap_servers": "127.0.0.1:9"})
    put_off(sweeps, desk, range(1))
    with sweeps.sweeper(limit=-1) as failures:
        eventually(lambda: failures, "it gives up", 60)
    assert isinstance(failures[0], Stopped)
    assert "echo.wake: wakes were not delivered" in str(failures[0])
    assert not all_woken(desk)


places = st.tuples(st.integers(0, 3), st.integers(0, 20))


@given(places, st.none() | places, st.booleans(), st.none() | st.tuples(st.integers(0, 10), st.integers(10, 21)))
def test_a_wait_is_over_only_by_a_committed_claim_and_sent_again_only_when_nothing_can_come_of_it(
    wake: tuple[int, int], claim: tuple[int, int] | None, done: bool, there: tuple[int, int] | None
) -> None:
    left = Left(uuid4(), 0, 1, *wake, *(claim or (None, None)))
    fate = left.fate(done, there, claims=True)
    assert left.at == (claim or wake)
    assert (fate == "handled") == (claim is not None and done)
    still_to_come = not done and there is not None and left.at[1] in range(*there)
    assert (fate == "ahead") == still_to_come
    assert left.fate(done, there, claims=False) == ("handled" if done else fate)
