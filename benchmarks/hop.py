"""One hop: an agent's worker beside the bare client loop on the same number of events of the same size, in one run.

    python benchmarks/hop.py [events=50000] [partitions=4]

Prints a JSON line a shape: events a second, CPU of the process an event, and the ratio to the bare loop with the same batch.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
import uuid
from datetime import UTC, datetime

from bare import encode, hop, produce
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from farandole import Agent, Event, ids
from farandole.contracts.codec import contract
from farandole.envelope import Emitter, begin
from farandole.settings import Settings, load_settings
from farandole.worker import prepare
from farandole.worker.holdings import Item
from farandole.worker.isolation import Isolation
from farandole.worker.running import run_worker
from farandole.worker.worker import Worker


class Classified(Event, topic="jobs.classified", stage="classified"):
    """350 bytes on the wire, as in the baseline."""

    category: str
    urgency: str
    text: str


class Enriched(Event, topic="jobs.enriched", stage="enriched"):
    """What comes out."""

    category: str
    urgency: str
    text: str


def make_topics(settings: Settings, names: list[str], partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": settings.brokers})
    for future in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
        future.result(20)


def fill_bare(settings: Settings, topic: str, events: int) -> None:
    now = datetime.now(UTC)
    sample = [
        encode(
            {
                "event_id": uuid.uuid4(),
                "trace_id": uuid.uuid4(),
                "causation_id": uuid.uuid4(),
                "occurred_at": now,
                "emitted_by": "classify",
                "attempt": 1,
                "hop": 1,
                "category": "billing",
                "urgency": "high",
                "text": "x" * 200,
            }
        )
        for _ in range(2000)
    ]
    _fill(settings, topic, [(str(i % 1000), sample[i % 2000]) for i in range(events)])


def fill_ours(settings: Settings, events: int) -> None:
    made = contract(Classified, settings.flow)
    payload = Classified(category="billing", urgency="high", text="x" * 150)
    records = []
    for _ in range(events):
        raw = begin(ids.new_trace_id(), Emitter("bench"), made.writer.name)
        records.append((raw["trace_id"], made.encode(raw, payload)))
    print(json.dumps({"bytes_of_an_event": len(records[0][1])}))
    _fill(settings, settings.topic(made.topic), records)


def _fill(settings: Settings, topic: str, records: list[tuple[str, bytes]]) -> None:
    producer = Producer({"bootstrap.servers": settings.brokers, "linger.ms": 20, "compression.type": "lz4"})
    for key, value in records:
        produce(producer, topic, key, value)
    if producer.flush(120):
        raise SystemExit("the broker did not take the events")


def agent(kind: str) -> Agent:
    made = Agent(f"enrich_{kind}_{uuid.uuid4().hex[:6]}", inline=kind == "inline", concurrency=500)
    if kind == "inline":

        @made.handle
        def enrich(event: Classified) -> Enriched:
            return Enriched(category=event.category, urgency=event.urgency, text=event.text)
    else:

        @made.handle
        async def enrich_async(event: Classified) -> Enriched:
            return Enriched(category=event.category, urgency=event.urgency, text=event.text)

    return made


async def run_ours(settings: Settings, kind: str, events: int) -> dict[str, float]:
    """The worker from its first batch to the commit of its last; the first batch starts the clock, as in the baseline."""
    wiring = agent(kind).wiring(settings.flow)
    await asyncio.to_thread(prepare, settings, [wiring])
    stop = asyncio.Event()
    worker = _Timed(settings, wiring, stop, Isolation())
    running = asyncio.create_task(run_worker(worker))
    while worker.conduct.signs.counts["Emitted"] < events and not running.done():
        await asyncio.sleep(0.002)
    ended, cpu = time.perf_counter(), time.process_time()
    stop.set()
    await running
    return {"events_per_s": events / (ended - worker.began), "cpu_us": (cpu - worker.cpu) / events * 1e6}


class _Timed(Worker):
    began = 0.0
    cpu = 0.0

    async def claim(self, items: list[Item]) -> None:
        if not self.began and items:
            self.began, self.cpu = time.perf_counter(), time.process_time()
        await super().claim(items)


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    partitions = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    logging.basicConfig(level="WARNING")
    for batch in (500, 2000):
        namespace = "b" + os.urandom(4).hex()
        settings = load_settings(namespace=namespace, batch=batch, partitions=partitions)
        source, sink = f"{namespace}.bare.in", f"{namespace}.bare.out"
        make_topics(settings, [source, sink, settings.topic("jobs.classified")], partitions)
        fill_bare(settings, source, events)
        fill_ours(settings, events)
        bare = hop(settings.brokers, source, sink, events, batch)
        print(json.dumps({"shape": "bare loop", "batch": batch, "events_per_s": round(bare)}))
        for kind in ("inline", "async"):
            for claims in (False, True):
                chosen = load_settings(namespace=namespace, batch=batch, partitions=partitions, claims=claims)
                found = asyncio.run(run_ours(chosen, kind, events))
                shape = f"{kind} handler, claims {'on' if claims else 'off'}"
                print(
                    json.dumps(
                        {
                            "shape": shape,
                            "batch": batch,
                            "events_per_s": round(found["events_per_s"]),
                            "cpu_us": round(found["cpu_us"], 1),
                            "ratio_to_bare": round(found["events_per_s"] / bare, 2),
                        }
                    )
                )


if __name__ == "__main__":
    main()
