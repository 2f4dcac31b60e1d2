"""The worker's parts without a broker: what flies, what is held and planned, and how much may wait."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Message, TopicPartition

from farandole import Agent, Context, Event, ids
from farandole.envelope import Coordinates, Emitter, Envelope, begin
from farandole.errors import Stopped
from farandole.handling import Handling
from farandole.kafka import MAX_DEAD_LETTER_BYTES, Record
from farandole.outcome import DeadLettered, Emitted, Failed
from farandole.settings import Settings, load_settings
from farandole.wake import Wake, unwrap
from farandole.worker.flight import Flight
from farandole.worker.holdings import MOST_IN_HAND, Held, Holdings, Item
from farandole.worker.intake import Intake
from farandole.worker.outputs import DEAD, MAX_RECORD_BYTES, Output, Outputs
from farandole.worker.positions import Note, decode
from farandole.worker.tracker import Tracker


class Asked(Event, topic="jobs.asked", stage="asked"):
    text: str = ""


class Answered(Event, topic="jobs.answered", stage="answered"):
    text: str


def settings(**given: Any) -> Settings:
    return load_settings(kafka_bootstrap_servers="127.0.0.1:1", database_url="postgresql://h/d", **given)


def holding() -> Held:
    return Held("jobs.asked", 0, Tracker(0), (0, []))


async def eventually_true(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not look():  # noqa: ASYNC110  a test looks in from outside
            await asyncio.sleep(0.005)


def item(held: Held, offset: int, key: bytes = b"k", **record: Any) -> Item:
    raw = begin(ids.new_trace_id(), Emitter("client"), "jobs.Asked")
    found = Record("jobs.asked", held.partition, offset, 0, key, **{"value": b"v", "headers": [], **record})
    return Item(found, held, offset, fields=raw, payload=Asked(text=str(offset)))


def handling(agent: Agent, finished: Callable[[Item], object] = lambda _: None) -> Callable[[Item], Awaitable[bool]]:
    """What a worker does with an item, less what it has around it."""
    made = Handling(agent.wiring("jobs"))

    async def handle(one: Item) -> bool:
        payload, fields = one.event()
        one.outcome = await made.run(payload, Envelope(fields))
        finished(one)
        return False

    return handle


def never(one: Item) -> None:
    """Nothing is put off in these tests."""
    raise AssertionError(one)


async def flown(agent: Agent, items: list[Item], concurrency: int = 2) -> list[Item]:
    """Have `items` handled; those finished, in the order of their ends."""
    finished: list[Item] = []
    flight = Flight(handling(agent, finished.append), concurrency, never)
    flight.admit(items)
    while flight.running:  # noqa: ASYNC110  a test looks in from outside
        await asyncio.sleep(0)
    assert not flight.failure.done() or flight.failure.exception() is None
    return finished


async def test_a_cancellation_inside_a_handler_is_an_error_of_its_attempt_and_leaves_no_hole() -> None:
    agent = Agent("answer", attempts=1, concurrency=2)

    @agent.handle
    async def answer(event: Asked, ctx: Context) -> Answered:
        if event.text == "1":
            inner = asyncio.ensure_future(asyncio.sleep(60))
            inner.cancel()
            await inner
        if event.text == "2":
            raise SystemExit(0)
        return Answered(text=event.text)

    held = holding()
    items = [item(held, offset, key=b"k%d" % (offset % 2)) for offset in range(5)]
    await flown(agent, items)
    assert [type(each.outcome) for each in items] == [Emitted, DeadLettered, DeadLettered, Emitted, Emitted]


async def test_events_of_a_key_are_handled_in_order_and_a_hanging_key_delays_only_itself() -> None:
    agent, seen = Agent("answer", concurrency=10), []
    gate = asyncio.Event()

    @agent.handle
    async def answer(event: Asked) -> None:
        if event.text == "0":
            await gate.wait()
        seen.append(int(event.text))

    held = holding()
    items = [item(held, offset, key=b"k%d" % (offset % 3)) for offset in range(12)]
    flight = Flight(handling(agent), 10, never)
    flight.admit(items)
    await eventually_true(lambda: len(seen) == 8)
    assert [number for number in seen if number % 3 == 1] == [1, 4, 7, 10]
    assert [number for number in seen if number % 3 == 2] == [2, 5, 8, 11]
    assert (flight.running, flight.queued, flight.ready) == (1, 3, 0)
    gate.set()
    await eventually_true(lambda: len(seen) == 12)
    assert [number for number in seen if number % 3 == 0] == [0, 3, 6, 9]


async def test_events_of_a_partition_that_was_lost_are_not_begun_and_what_runs_is_cancelled() -> None:
    begun: list[str] = []
    cancelled = asyncio.Event()
    agent = Agent("answer", concurrency=1)

    @agent.handle
    async def answer(event: Asked) -> None:
        begun.append(event.text)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    held = holding()
    flight = Flight(handling(agent), 1, never)
    flight.admit([item(held, offset) for offset in range(3)])
    await eventually_true(lambda: bool(begun))
    held.leaving = True
    flight.let_go()
    await asyncio.sleep(0)
    assert not cancelled.is_set(), "what runs may end before the partition goes"
    held.lost = True
    flight.let_go()
    await cancelled.wait()
    await eventually_true(lambda: flight.running == 0)
    assert (begun, held.running, flight.queued) == (["0"], 0, 0)


async def test_a_drain_waits_for_what_runs_gives_it_up_after_the_grace_and_begins_nothing_more() -> None:
    begun: list[str] = []
    finished: list[Item] = []
    agent = Agent("answer", concurrency=2)

    @agent.handle
    async def answer(event: Asked) -> None:
        begun.append(event.text)
        await asyncio.sleep(60 if event.text == "1" else 0.05)

    held = holding()
    items = [item(held, offset, key=b"%d" % offset) for offset in range(4)]
    flight = Flight(handling(agent, finished.append), 2, never)
    flight.admit(items)
    await eventually_true(lambda: len(begun) == 2)
    await flight.drain(0.3)
    assert begun == ["0", "1"]
    assert [each.record.offset for each in finished] == [0]
    assert [each.outcome for each in items[1:]] == [None] * 3


async def test_a_handler_that_will_not_be_cancelled_neither_holds_the_drain_nor_hides_later_ones() -> None:
    agent, finished = Agent("answer", attempts=1, concurrency=1), list[Item]()

    @agent.handle
    async def answer(event: Asked) -> None:
        if event.text == "0":
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        else:
            inner = asyncio.ensure_future(asyncio.sleep(60))
            inner.cancel()
            await inner

    lost, held = holding(), holding()
    flight = Flight(handling(agent, finished.append), 1, never)
    flight.admit([item(lost, 0), item(held, 1, key=b"other")])
    await asyncio.sleep(0)
    lost.leaving = lost.lost = True
    flight.let_go()
    await eventually_true(lambda: flight.running == 0)
    assert [type(one.outcome) for one in finished if one.held is held] == [DeadLettered]


@pytest.mark.parametrize("ends", ["waits", "returns"])
async def test_a_handler_that_cancels_itself_has_failed_an_attempt_and_does_no_harm_to_the_next(ends: str) -> None:
    agent, finished = Agent("answer", attempts=1, concurrency=1), list[Item]()

    @agent.handle
    async def answer(event: Asked) -> Answered:
        if event.text == "0":
            task = asyncio.current_task()
            assert task
            task.cancel()
            if ends == "waits":
                await asyncio.sleep(60)
        else:
            await asyncio.sleep(0)
        return Answered(text=event.text)

    made = Handling(agent.wiring("jobs"))

    async def handle(one: Item) -> bool:
        payload, fields = one.event()
        one.outcome = await made.run(payload, Envelope(fields))
        finished.append(one)
        return False

    flight = Flight(handle, 1, never)
    made.abandoned = flight.abandoned
    flight.admit([item(holding(), offset) for offset in range(2)])
    await eventually_true(lambda: flight.running == 0)
    kinds = [type(one.outcome) for one in finished]
    assert kinds == [DeadLettered if ends == "waits" else Emitted, Emitted]


async def test_a_failure_that_the_worker_cannot_go_on_after_is_told() -> None:
    agent = Agent("answer")

    @agent.handle
    async def answer(event: Asked) -> None:
        raise Stopped("no more")

    flight = Flight(handling(agent), 1, never)
    flight.admit([item(holding(), 0)])
    with pytest.raises(Stopped, match="no more"):
        await asyncio.wait_for(flight.failure, 10)


async def test_a_generators_body_runs_in_the_handlers_thread() -> None:
    names = []
    agent = Agent("answer")

    @agent.handle
    def answer(event: Asked) -> Iterator[Answered]:
        names.append(threading.current_thread().name)
        yield Answered(text="a")
        yield Answered(text="b")

    (done,) = await flown(agent, [item(holding(), 0)])
    assert done.outcome == Emitted([Answered(text="a"), Answered(text="b")])
    assert names == ["handle-answer"]


def worked(offsets: range) -> tuple[Holdings, list[Item]]:
    """A partition whose first records were taken."""
    holdings = Holdings("answer.0", "life", 100)
    holdings.metadata = "generation 3"
    holdings.hold("jobs.asked", 0, 0)
    held = holdings.held["jobs.asked", 0]
    for offset in offsets:
        holdings.arrive(item(held, offset))
    return holdings, holdings.take(100)


def test_what_is_finished_is_planned_once_and_again_only_when_its_commit_failed() -> None:
    holdings, items = worked(range(4))
    holdings.finish([items[1], items[2]])
    plan = holdings.plan([])
    assert plan
    assert (plan.items, plan.metadata) == ([items[1], items[2]], "generation 3")
    (place,) = plan.places
    assert (place.position, place.beyond) == (0, [(1, 3)])
    assert decode(place.text, 0) == Note("answer.0", plan.token, [(1, 3)])
    holdings.finish([items[0]])
    again = holdings.plan(plan.items)
    assert again
    assert again.items == [items[1], items[2]]
    assert again.token != plan.token
    holdings.commit(again)
    last = holdings.plan([])
    assert last
    assert (last.items, last.places[0].position, last.places[0].beyond) == ([items[0]], 3, [])
    holdings.commit(last)
    assert holdings.plan([]) is None
    assert not holdings.to_commit
    assert holdings.held["jobs.asked", 0].tracker.unfinished == 1


def test_nothing_of_a_lost_partition_is_planned_though_it_came_back() -> None:
    holdings, items = worked(range(2))
    holdings.finish(items)
    holdings.drop([("jobs.asked", 0)])
    holdings.hold("jobs.asked", 0, 0)
    assert holdings.plan([]) is None


def test_what_waited_of_a_partition_that_leaves_is_not_passed_over() -> None:
    """While its last handlings end, the worker goes on taking of others: the records let go must be read by the next owner."""
    holdings, items = worked(range(1))
    held = holdings.held["jobs.asked", 0]
    for offset in range(1, 9):
        holdings.arrive(item(held, offset))
    leaving = threading.Thread(target=holdings.leave, args=([("jobs.asked", 0)], 20.0))
    leaving.start()
    while not held.leaving:
        time.sleep(0.001)
    held.end = 9  # the end of the partition is met once more
    assert holdings.take(100) == []
    holdings.finish(items)
    plan = holdings.plan([])
    assert plan
    assert [place.position for place in plan.places] == [1]
    holdings.commit(plan)
    leaving.join(20)
    assert not leaving.is_alive(), "nothing is left to wait for"


def test_a_plan_that_was_refused_is_planned_again_alone_and_without_what_was_lost_since() -> None:
    holdings, items = worked(range(3))
    holdings.finish(items[:2])
    refused = holdings.plan([])
    assert refused
    holdings.finish(items[2:])
    again = holdings.plan(refused.items)
    assert again
    assert again.items == items[:2], "what was too much must not grow"
    holdings.commit(again)
    rest = holdings.plan([])
    assert rest
    assert rest.items == items[2:]
    holdings.drop([("jobs.asked", 0)])
    holdings.hold("jobs.asked", 1, 0)
    other = item(holdings.held["jobs.asked", 1], 0)
    holdings.arrive(other)
    holdings.finish(holdings.take(10))
    found = holdings.plan(rest.items)
    assert found
    assert found.items == [other], "a lost plan does not stand in the way of what comes after it"


def test_one_partition_full_of_records_leaves_the_others_their_share() -> None:
    holdings = Holdings("answer.0", "life", 100)
    holdings.hold("jobs.asked", 0, 0)
    holdings.hold("jobs.asked", 1, 0)
    hot, cool = (holdings.held["jobs.asked", partition] for partition in (0, 1))
    for offset in range(MOST_IN_HAND + 50):
        holdings.arrive(item(hot, offset))
    while holdings.take(1000):
        pass
    assert hot.tracker.unfinished == MOST_IN_HAND
    holdings.arrive(item(cool, 0))
    assert len(holdings.take(1000)) == 1


def test_large_records_are_taken_by_their_bytes_and_one_at_least() -> None:
    holdings = Holdings("answer.0", "life", 100)
    holdings.hold("jobs.asked", 0, 0)
    held = holdings.held["jobs.asked", 0]
    holdings.metadata = "generation 3"
    for offset in range(80):
        holdings.arrive(item(held, offset, value=b"x" * 1_000_000))
    first = holdings.take(1000)
    assert 60 < len(first) < 70
    for one in first:
        one.outputs = [Output("jobs.answered", "k", b"y" * 1_000_000, [])]
    holdings.finish(first)
    plan = holdings.plan([])
    assert plan
    assert len(plan.items) < 12, "what comes of them has to be written within seconds"


def test_before_the_group_is_joined_nothing_is_planned_and_nothing_forgotten() -> None:
    holdings, items = worked(range(1))
    holdings.metadata = None
    holdings.finish(items)
    assert holdings.plan([]) is None
    holdings.metadata = "generation 1"
    assert holdings.plan([])


def test_partitions_share_a_take_and_what_was_finished_before_is_passed_over() -> None:
    holdings = Holdings("answer.0", "life", 100)
    holdings.hold("jobs.asked", 0, 0, [(1, 3)])
    holdings.hold("jobs.asked", 1, 0)
    for partition in (0, 1):
        for offset in range(10):
            holdings.arrive(item(holdings.held["jobs.asked", partition], offset))
    taken = [(one.held.partition, one.offset) for one in holdings.take(6)]
    assert taken == [(0, 0), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2)]


class FakeConsumer:
    """Hands out what a test gave it; remembers which partitions are paused."""

    def __init__(self, offsets: dict[int, int]) -> None:
        self.offsets = offsets
        self.log: list[Message[Any, Any]] = []
        self.paused: set[int] = set()

    def poll(self, _timeout: float) -> Message[Any, Any] | None:
        ready = [message for message in self.log if message.partition() not in self.paused]
        if not ready:
            return None
        self.log.remove(ready[0])
        return ready[0]

    def consume(self, most: int, _timeout: float) -> list[Message[Any, Any]]:
        found = [message for message in self.log if message.partition() not in self.paused][:most]
        self.log = [message for message in self.log if message not in found]
        return found

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return [TopicPartition(place.topic, place.partition, self.offsets[place.partition]) for place in places]

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition("jobs.asked", partition) for partition in self.offsets]

    def incremental_assign(self, _places: list[TopicPartition]) -> None: ...

    def consumer_group_metadata(self) -> bytes:
        return b"CGMDv2:" + (3).to_bytes(4, "little", signed=True) + b"group\0"

    def pause(self, places: list[TopicPartition]) -> None:
        self.paused |= {place.partition for place in places}

    def resume(self, places: list[TopicPartition]) -> None:
        self.paused -= {place.partition for place in places}


class AllKnown:
    """Every offset fits."""

    def checked(self, _consumer: object, found: list[TopicPartition]) -> list[TopicPartition]:
        return found


def intake(batch: int) -> tuple[Intake, Any, Holdings]:
    holdings = Holdings("answer.0", "life", 100)
    topics = ["jobs.asked", "answer.wake"]
    known: Any = AllKnown()
    made = Intake(settings(batch=batch), topics, "answer", "answer.0", holdings, known, lambda: None)
    made._consumer.close()
    fake: Any = FakeConsumer({0: 0, 1: 0})
    made._consumer = fake
    made.membership.on_assign(fake, fake.assignment())
    made.membership.look_at_group(fake)
    return made, fake, holdings


def fill(fake: Any, count: int, partition: int = 0) -> None:
    fake.log += [Message("jobs.asked", partition, n, b"k", b"v", None, None, (1, 0)) for n in range(count)]


def test_a_partition_that_nobody_takes_from_is_paused_and_the_others_flow_on() -> None:
    made, fake, holdings = intake(batch=10)
    fill(fake, 500)
    while 0 not in fake.paused:
        made._poll()
        made._balance()
    assert len(holdings.held["jobs.asked", 0].waiting) <= 2 * 10 + 10 + 1
    fill(fake, 5, partition=1)
    made._poll()
    made._balance()
    assert (fake.paused, len(holdings.held["jobs.asked", 1].waiting)) == ({0}, 5)


def test_a_pause_ends_with_a_rebalance_that_brings_no_partitions_and_with_room() -> None:
    made, fake, holdings = intake(batch=10)
    fill(fake, 100)
    while not fake.paused:
        made._poll()
        made._balance()
    made.membership.on_assign(fake, [])
    assert not fake.paused, "classic groups call it so on every rebalance"
    made._balance()
    assert fake.paused, "it is still full"
    while holdings.take(10):
        made.taken()
    made._balance()
    assert not fake.paused


def test_an_end_is_never_committed_before_the_records_below_it() -> None:
    made, fake, holdings = intake(batch=10)
    fill(fake, 15)
    while fake.log:
        made._poll()
    first = holdings.take(10)
    holdings.finish(first)
    plan = holdings.plan([])
    assert plan
    assert [each.offset for each in first] == list(range(10))
    assert [place.position for place in plan.places] == [10]


def test_a_wake_brings_back_the_record_as_it_lay() -> None:
    made, fake, holdings = intake(batch=10)
    holdings.hold("answer.wake", 0, 5)
    wake = Wake(Coordinates("jobs.asked", 3, 77, 123), seq=2, run=1, attempts=4, error="was away")
    headers: Any = [("a", b"1"), *wake.headers(), ("a", None)]
    fake.log.append(Message("answer.wake", 0, 5, b"k", b"v", headers, None, (1, 999)))
    made._poll()
    (came,) = holdings.take(10)
    assert came.wake == wake
    assert came.record == Record("jobs.asked", 3, 77, 123, b"k", b"v", [("a", b"1"), ("a", None)])
    assert (came.held.topic, came.offset) == ("answer.wake", 5)


def outputs(agent_name: str = "answer") -> Outputs:
    agent = Agent(agent_name)

    @agent.handle
    def answer(event: Asked) -> Answered:
        return Answered(text=event.text)

    return Outputs(settings(), agent.wiring("jobs"))


def test_an_output_is_measured_with_its_headers_and_word_of_the_failure_gets_through() -> None:
    held = holding()
    full = item(held, 0, headers=[("h", b"x" * (MAX_RECORD_BYTES - 1000))])
    full.outcome = Emitted([Answered(text="y" * 2000)])
    dead, told = outputs().of(full)
    assert isinstance(full.outcome, DeadLettered)
    assert full.outcome.cause == "too_large"
    assert dead.headers[0] == full.record.headers[0], "the dead letter keeps the record as it was"
    assert told.size < MAX_RECORD_BYTES


@pytest.mark.parametrize("reason", ["bad \ud800", "too long " * 300_000])
def test_a_reason_that_no_event_can_hold_ends_the_job_all_the_same(reason: str) -> None:
    failed = item(holding(), 0)
    failed.outcome = Failed(reason)
    (told,) = outputs().of(failed)
    assert told.size < 10_000


def test_a_dead_letter_larger_than_its_topic_takes_is_cut_and_says_so() -> None:
    held = holding()
    giant = item(held, 7, value=b"z" * (MAX_DEAD_LETTER_BYTES + 5))
    giant.outcome = DeadLettered("invalid", "too much")
    dead, _ = outputs().of(giant)
    assert dead.size <= MAX_DEAD_LETTER_BYTES
    headers = dict(dead.headers)
    assert headers[DEAD + "cut_from_bytes"] == str(MAX_DEAD_LETTER_BYTES + 5).encode()
    assert headers[DEAD + "offset"] == b"7"


@pytest.mark.parametrize(
    ("name", "value"),
    [("run", "1000000000000"), ("seq", "-3"), ("partition", "10000000000"), ("offset", "9" * 25), ("topic", "a\0b")],
)
def test_a_record_with_numbers_that_no_wake_has_is_no_wake(name: str, value: str) -> None:
    whole = Wake(Coordinates("jobs.asked", 3, 77, 123), seq=2, run=1, attempts=4, error="was away").headers()
    bent = [(key, value.encode() if key == f"farandole.wake.{name}" else old) for key, old in whole]
    record = Record("answer.wake", 0, 5, 999, b"k", b"v", bent)
    assert unwrap(record, str) == (record, None)
