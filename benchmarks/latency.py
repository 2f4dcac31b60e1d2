"""One event at a time through one exactly-once hop: a worker beside the bare client loop, in one run.

    python benchmarks/latency.py [samples=300]

From produce until a read_committed consumer has the output. The bare loop passes bytes on; the worker decodes, claims,
handles and encodes. Prints a JSON line a contender and the ratio.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import statistics
import sys
import threading
import time
import uuid
from collections.abc import Callable

from bare import echo
from confluent_kafka import Consumer, Producer
from hop import Classified, agent, make_topics

from farandole import ids
from farandole.contracts.codec import contract
from farandole.envelope import Emitter, begin
from farandole.settings import Settings, load_settings
from farandole.worker import prepare
from farandole.worker.isolation import Isolation
from farandole.worker.running import run_worker
from farandole.worker.worker import Worker

WARM_UP = 30


def samples_of(
    settings: Settings, source: str, sink: str, count: int, value: Callable[[], tuple[str, bytes]]
) -> list[float]:
    """Milliseconds from produce to the committed output, one event after the other."""
    reader = Consumer(
        {
            "bootstrap.servers": settings.brokers,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
        }
    )
    assigned = threading.Event()
    reader.subscribe([sink], on_assign=lambda *_: assigned.set())
    while not assigned.is_set():
        reader.poll(0.1)
    reader.poll(1.0)
    writer, waits = Producer({"bootstrap.servers": settings.brokers, "linger.ms": 0}), []
    for _ in range(count + WARM_UP):
        key, payload = value()
        started = time.perf_counter()
        writer.produce(source, key=key, value=payload)
        writer.flush()
        while (record := reader.poll(5)) is None or record.error() or record.key() != key.encode():
            if time.perf_counter() - started > 30:
                raise SystemExit("no output within 30 s")
        waits.append((time.perf_counter() - started) * 1000)
        time.sleep(0.005)  # an idle moment between events, as in a trickle
    reader.close()
    return waits[WARM_UP:]


def bare(settings: Settings, count: int) -> list[float]:
    source, sink = f"{settings.namespace}.bare.in", f"{settings.namespace}.bare.out"
    make_topics(settings, [source, sink], 4)
    ready, stop = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=echo, args=(settings.brokers, source, sink, uuid.uuid4().hex, stop.is_set, ready.set)
    )
    thread.start()
    ready.wait(30)
    try:
        return samples_of(settings, source, sink, count, lambda: (uuid.uuid4().hex, b"x" * 300))
    finally:
        stop.set()
        thread.join()


async def ours(settings: Settings, count: int, kind: str) -> list[float]:
    wiring = agent(kind).wiring(settings.flow)
    await asyncio.to_thread(prepare, settings, [wiring])
    stop = asyncio.Event()
    worker = Worker(settings, wiring, stop, Isolation())
    running = asyncio.create_task(run_worker(worker))
    made = contract(Classified, settings.flow)

    def value() -> tuple[str, bytes]:
        raw = begin(ids.new_trace_id(), Emitter("bench"), made.writer.name)
        return raw["trace_id"], made.encode(raw, Classified(category="billing", urgency="high", text="x" * 150))

    try:
        return await asyncio.to_thread(
            samples_of, settings, settings.topic("jobs.classified"), settings.topic("jobs.enriched"), count, value
        )
    finally:
        stop.set()
        await running


def show(contender: str, waits: list[float], base: list[float] | None = None) -> None:
    cuts, found = statistics.quantiles(waits, n=100), {"contender": contender}
    line: dict[str, object] = {**found, "p50_ms": round(cuts[49], 1), "p99_ms": round(cuts[98], 1)}
    if base:
        bare_cuts = statistics.quantiles(base, n=100)
        line |= {"ratio_p50": round(cuts[49] / bare_cuts[49], 2), "ratio_p99": round(cuts[98] / bare_cuts[98], 2)}
    print(json.dumps(line), flush=True)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    logging.basicConfig(level="WARNING")
    settings = load_settings(namespace="l" + os.urandom(4).hex(), partitions=4)
    base = bare(settings, count)
    show("bare loop", base)
    for claims in (False, True):
        for kind in ("inline", "async"):
            chosen = load_settings(namespace="l" + os.urandom(4).hex(), partitions=4, claims=claims)
            waits = asyncio.run(ours(chosen, count, kind))
            show(f"{kind} handler, claims {'on' if claims else 'off'}", waits, base)


if __name__ == "__main__":
    main()
