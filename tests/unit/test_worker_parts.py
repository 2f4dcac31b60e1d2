"""The worker's parts without a broker: what a batch may become, what is held, and how much may wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Message, TopicPartition

from farandole import Agent, Context, Event, ids
from farandole.envelope import Emitter, begin
from farandole.handling import Handling
from farandole.kafka import MAX_DEAD_LETTER_BYTES, Record
from farandole.outcome import DeadLettered, Emitted
from farandole.settings import Settings, load_settings
from farandole.worker.batch import Held, Item
from farandole.worker.intake import Intake
from farandole.worker.lanes import run_lanes
from farandole.worker.outputs import DEAD, MAX_RECORD_BYTES, Outputs


class Asked(Event, topic="jobs.asked", stage="asked"):
    text: str = ""


class Answered(Event, topic="jobs.answered", stage="answered"):
    text: str


def settings(**given: Any) -> Settings:
    return load_settings(kafka_bootstrap_servers="127.0.0.1:1", database_url="postgresql://h/d", **given)


def item(held: Held, offset: int, key: bytes = b"k", **record: Any) -> Item:
    raw = begin(ids.new_trace_id(), Emitter("client"), "jobs.Asked")
    found = Record("jobs.asked", held.partition, offset, 0, key, **{"value": b"v", "headers": [], **record})
    return Item(found, held, fields=raw, payload=Asked(text=str(offset)))


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

    held = Held("jobs.asked", 0, 0)
    items = [item(held, offset, key=b"k%d" % (offset % 2)) for offset in range(5)]
    await run_lanes(items, Handling(agent.wiring("jobs")), 2)
    assert [type(each.outcome) for each in items] == [Emitted, DeadLettered, DeadLettered, Emitted, Emitted]


async def test_cancelling_the_worker_leaves_its_events_open() -> None:
    agent = Agent("answer")

    @agent.handle
    async def answer(event: Asked) -> None:
        await asyncio.sleep(60)

    held = Held("jobs.asked", 0, 0)
    items = [item(held, offset) for offset in range(3)]
    lanes = asyncio.ensure_future(run_lanes(items, Handling(agent.wiring("jobs")), 2))
    await asyncio.sleep(0)
    lanes.cancel()
    with pytest.raises(asyncio.CancelledError):
        await lanes
    assert [each.outcome for each in items] == [None] * 3


async def test_events_of_a_partition_that_was_lost_are_not_begun() -> None:
    begun = []
    agent = Agent("answer", inline=False, concurrency=1)

    @agent.handle
    async def answer(event: Asked) -> None:
        begun.append(event.text)
        held.lost = True

    held = Held("jobs.asked", 0, 0)
    await run_lanes([item(held, offset) for offset in range(3)], Handling(agent.wiring("jobs")), 1)
    assert begun == ["0"]


async def test_a_generators_body_runs_in_the_handlers_thread() -> None:
    names = []
    agent = Agent("answer")

    @agent.handle
    def answer(event: Asked) -> Iterator[Answered]:
        names.append(threading.current_thread().name)
        yield Answered(text="a")
        yield Answered(text="b")

    held = Held("jobs.asked", 0, 0)
    items = [item(held, 0)]
    await run_lanes(items, Handling(agent.wiring("jobs")), 1)
    assert items[0].outcome == Emitted([Answered(text="a"), Answered(text="b")])
    assert names == ["handle-answer"]


class FakeConsumer:
    """Hands out what a test gave it; remembers which partitions are paused."""

    def __init__(self, offsets: dict[int, int]) -> None:
        self.offsets = offsets
        self.log: list[Message[Any, Any]] = []
        self.paused: set[int] = set()

    def poll(self, _timeout: float) -> Message[Any, Any] | None:
        return self.log.pop(0) if self.log and not self.paused else None

    def consume(self, most: int, _timeout: float) -> list[Message[Any, Any]]:
        found, self.log = self.log[:most], self.log[most:]
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


def intake(batch: int) -> tuple[Intake, Any]:
    made = Intake(settings(batch=batch), "jobs.asked", "answer", "answer.0", most=batch)
    made._consumer.close()
    fake: Any = FakeConsumer({0: 0, 1: 0})
    made._consumer = fake
    made._on_assign(fake, fake.assignment())
    made.membership.look_at_group(fake)
    return made, fake


def fill(fake: Any, count: int, start: int = 0) -> None:
    fake.log += [Message("jobs.asked", 0, start + n, b"k", b"v", None, None, (1, 0)) for n in range(count)]


def test_no_more_waits_than_a_few_batches_while_one_is_in_hand() -> None:
    made, fake = intake(batch=10)
    fill(fake, 500)
    assert made._take() is None
    made._poll()
    assert made._take() is not None, "one batch is in hand, and nobody comes for the next"
    for _ in range(60):
        made._poll()
        made._balance()
    assert fake.paused == {0, 1}
    assert len(made._waiting) <= 3 * 10


def test_a_pause_ends_with_a_rebalance_that_brings_no_partitions_and_with_room() -> None:
    made, fake = intake(batch=10)
    fill(fake, 100)
    while not fake.paused:
        made._poll()
        made._balance()
    made._on_assign(fake, [])
    assert not fake.paused, "classic groups call it so on every rebalance"
    made._balance()
    assert fake.paused, "it is still full"
    while made._waiting:
        made._take()
    made._balance()
    assert not fake.paused


def test_an_end_is_never_committed_before_the_records_below_it() -> None:
    made, fake = intake(batch=10)
    fill(fake, 15)
    made._poll()
    made._poll()
    first = made._take()
    assert first is not None
    assert [each.record.offset for each in first.items] == list(range(10))
    assert list(first.ends.values()) == [10]


def outputs(agent_name: str = "answer") -> Outputs:
    agent = Agent(agent_name)

    @agent.handle
    def answer(event: Asked) -> Answered:
        return Answered(text=event.text)

    return Outputs(settings(), agent.wiring("jobs"))


def test_an_output_is_measured_with_its_headers_and_word_of_the_failure_gets_through() -> None:
    held = Held("jobs.asked", 0, 0)
    full = item(held, 0, headers=[("h", b"x" * (MAX_RECORD_BYTES - 1000))])
    full.outcome = Emitted([Answered(text="y" * 2000)])
    dead, told = outputs().of(full)
    assert isinstance(full.outcome, DeadLettered)
    assert full.outcome.cause == "too_large"
    assert dead.headers[0] == full.record.headers[0], "the dead letter keeps the record as it was"
    assert told.size < MAX_RECORD_BYTES


def test_a_dead_letter_larger_than_its_topic_takes_is_cut_and_says_so() -> None:
    held = Held("jobs.asked", 0, 0)
    giant = item(held, 7, value=b"z" * (MAX_DEAD_LETTER_BYTES + 5))
    giant.outcome = DeadLettered("invalid", "too much")
    dead, _ = outputs().of(giant)
    assert dead.size <= MAX_DEAD_LETTER_BYTES
    headers = dict(dead.headers)
    assert headers[DEAD + "cut_from_bytes"] == str(MAX_DEAD_LETTER_BYTES + 5).encode()
    assert headers[DEAD + "offset"] == b"7"
