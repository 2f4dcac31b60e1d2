"""Many events of one partition in flight at once, order kept by key: how close to the ideal a worker comes, in one run.

    python benchmarks/lanes.py [events=10000]

The ideal is computed from the very handler times: the longest of the busiest key's sum and the total over the handlers in
flight. Prints a JSON line a shape: seconds from the first handler's start to the last commit, ideal, their ratio.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import resource
import sys
import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from farandole import Agent, Event, ids
from farandole.contracts.codec import contract
from farandole.envelope import Emitter, begin
from farandole.settings import Settings, load_settings
from farandole.worker import prepare
from farandole.worker.isolation import Isolation
from farandole.worker.running import run_worker
from farandole.worker.worker import Worker


class Asked(Event, topic="jobs.asked", stage="asked"):
    """What comes in; `milliseconds` is how long its handler takes."""

    number: int
    milliseconds: float
    text: str


class Answered(Event, topic="jobs.answered", stage="answered"):
    """What comes out."""

    number: int


def fill(settings: Settings, times: list[float], keys: int) -> None:
    admin = AdminClient({"bootstrap.servers": settings.brokers})
    topic = settings.topic("jobs.asked")
    for future in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        future.result(20)
    made = contract(Asked, settings.flow)
    producer = Producer({"bootstrap.servers": settings.brokers, "linger.ms": 20})
    for number, milliseconds in enumerate(times):
        raw = begin(ids.new_trace_id(), Emitter("bench"), made.writer.name)
        value = made.encode(raw, Asked(number=number, milliseconds=milliseconds, text="x" * 150))
        producer.produce(topic, value, key=f"key {number % keys}")
        producer.poll(0)
    if producer.flush(60):
        raise SystemExit("the broker did not take the events")


async def run(settings: Settings, events: int, in_flight: int) -> tuple[float, int]:
    """Seconds from the first handler to the last commit, and the most handlers at once."""
    agent = Agent(f"answer_{os.urandom(3).hex()}", concurrency=in_flight)
    began, running, most = 0.0, 0, 0

    @agent.handle
    async def answer(event: Asked) -> Answered:
        nonlocal began, running, most
        began = began or time.perf_counter()
        running += 1
        most = max(most, running)
        await asyncio.sleep(event.milliseconds / 1000)
        running -= 1
        return Answered(number=event.number)

    wiring = agent.wiring(settings.flow)
    await asyncio.to_thread(prepare, settings, [wiring])
    stop = asyncio.Event()
    worker = Worker(settings, wiring, stop, Isolation())
    working = asyncio.create_task(run_worker(worker))
    while worker.conduct.signs.counts["Emitted"] < events and not working.done():
        await asyncio.sleep(0.002)
    took = time.perf_counter() - began
    stop.set()
    await working
    return took, most


def measure(name: str, times: list[float], keys: int, in_flight: int) -> None:
    settings = load_settings(namespace="b" + os.urandom(4).hex(), partitions=1)
    fill(settings, times, keys)
    took, most = asyncio.run(run(settings, len(times), in_flight))
    by_key = [sum(times[key::keys]) / 1000 for key in range(min(keys, len(times)))]
    ideal = max(*by_key, sum(times) / 1000 / in_flight)
    found = {
        "shape": name,
        "seconds": round(took, 2),
        "ideal": round(ideal, 2),
        "ratio": round(took / ideal, 2),
        "most_at_once": most,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(found))


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    logging.basicConfig(level="WARNING")
    chance = random.Random(7)
    # First, so that its memory is its own: a process keeps what it has had.
    measure("2,000 handlers of 1 s at once, 10,000 events", [1000.0] * 10_000, 10_000, 2_000)
    times = [chance.uniform(0, 5) for _ in range(events)]
    for keys in (1_000, 20):
        measure(f"0-5 ms, 100 in flight, {keys} keys", times, keys, 100)


if __name__ == "__main__":
    main()
