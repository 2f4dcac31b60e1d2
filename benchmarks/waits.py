"""Many waits that are due at once: how long a sweeper takes to wake them all, beside a bare producer of the same records.

    python benchmarks/waits.py [waits=100000] [bytes=350]

Prints JSON lines: seconds, wakes a second, the ratio to the bare producer, and how far the process grew meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import sys
import time
from typing import Any

from confluent_kafka import Producer

from farandole import Agent, Event, migrate, postgres, topics
from farandole.envelope import Coordinates
from farandole.outage import Outage
from farandole.postgres import Connection
from farandole.settings import Settings, load_settings
from farandole.wake import Wake
from farandole.worker.sweeper import Sweeper
from farandole.worker.waits import Waits

FILL = """
INSERT INTO wait (agent, event_id, run, seq, kind, trace_id, due, topic, partition, "offset", timestamp_ms, key, value, headers,
                  attempts, error)
SELECT 'slow', gen_random_uuid(), 0, 1, 'retry', gen_random_uuid(), now(), 'jobs.asked', 0, number, 1700000000000,
       convert_to(gen_random_uuid()::text, 'UTF8'), decode(repeat('7f', %s), 'hex'), '[["traceparent", "MDA="]]', 3,
       'ConnectionResetError: the model is overloaded (handler.py:12)'
FROM generate_series(1, %s) AS number
"""


class Asked(Event, topic="jobs.asked", stage="asked"):
    """What the agent reads; nobody writes it here."""

    text: str


def agent() -> Agent:
    made = Agent("slow")

    @made.handle
    async def slow(event: Asked) -> None: ...

    return made


def megabytes() -> float:
    """The most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024)


def bare(settings: Settings, topic: str, waits: int, size: int) -> float:
    """Seconds for the same keys, values and headers, all in memory already."""
    wakes = [
        Wake(Coordinates("jobs.asked", 0, number, 1_700_000_000_000), 1, 0, 3, "E" * 60) for number in range(waits)
    ]
    headers: list[Any] = [[("traceparent", b"00"), *wake.headers()] for wake in wakes]
    producer = Producer({"bootstrap.servers": settings.brokers, "enable.idempotence": True, "compression.type": "lz4"})
    began = time.perf_counter()
    for number in range(waits):
        producer.produce(topic, value=b"\x7f" * size, key=f"{number:036}", headers=headers[number])
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker did not take the records")
    return time.perf_counter() - began


async def sweep(settings: Settings, made: Agent, waits: int) -> float:
    """Seconds until one sweeper has woken all of them."""
    stop = asyncio.Event()
    sweeper = Sweeper(settings, made, Waits(settings, made), lambda: Outage("benchmark", 60))
    began = time.perf_counter()
    running = asyncio.create_task(sweeper.run(stop))
    while sweeper.woken < waits and not running.done():
        await asyncio.sleep(0.01)
    took = time.perf_counter() - began
    stop.set()
    await running
    return took


def fill(connection: Connection[Any], waits: int, size: int) -> None:
    connection.execute(FILL, (size, waits))
    connection.execute("ANALYZE wait")


def main() -> None:
    waits = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 350
    logging.basicConfig(level="WARNING")
    settings, made = load_settings(namespace="b" + os.urandom(4).hex()), agent()
    migrate.migrate(settings)
    topics.ensure(settings, topics.of_agents(settings, [made]))
    with postgres.connect(settings) as connection:
        fill(connection, waits, size)
        before = megabytes()
        took = asyncio.run(sweep(settings, made, waits))
        grown = megabytes() - before
        counted = connection.execute("SELECT count(*) FROM wait WHERE woken_at IS NOT NULL AND wakes = 1").fetchone()
        if counted != (waits,):
            raise SystemExit(f"woken once: {counted} of {waits}")
        plain = bare(settings, settings.topic(made.wake_topic), waits, size)
        print(json.dumps({"shape": "bare producer", "waits": waits, "seconds": round(plain, 2)}))
        print(
            json.dumps(
                {
                    "shape": "one sweeper",
                    "waits": waits,
                    "seconds": round(took, 2),
                    "wakes_per_s": round(waits / took),
                    "times_bare": round(took / plain, 1),
                    "grown_mb": round(grown, 1),
                }
            )
        )
        connection.execute(f"DROP SCHEMA {settings.schema_name} CASCADE")


if __name__ == "__main__":
    main()
