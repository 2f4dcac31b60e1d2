"""What it costs to be there: the command line's start, an agent that waits, submitting; each beside a baseline, in one run.

    python benchmarks/startup.py [submissions=20000]      # KAFKA_BOOTSTRAP_SERVERS and DATABASE_URL, or `farandole up`

Prints one JSON line a figure. A start is the best of ten, in seconds, beside `python -c pass`. `idle` is what one agent
that waits for work holds, in MB (`private`: what its end would free), beside the bare consumer and producer; needs Linux.
`submit` is rows a second, checked, encoded and acknowledged, beside the bare producer with values of the same size.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bare import produce
from confluent_kafka import Producer
from hop import make_topics

from farandole import Client, Event
from farandole.settings import Settings, load_settings
from farandole.sources import Row
from farandole.submissions import submissions
from farandole.testing.flow import environment

ROOT = Path(__file__).parents[1]
TEXT = "x" * 200
BARE = """
import sys
from confluent_kafka import Consumer, Producer
reader = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2]})
writer = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": sys.argv[2]})
writer.init_transactions(30)
reader.subscribe([sys.argv[2]])
reader.poll(3)
print("ready", flush=True)
while True:
    reader.poll(1)
"""


class Asked(Event, topic="jobs.asked", stage="asked", ingest=True):
    """One row."""

    number: int
    text: str


def start(*arguments: str) -> float:
    """Seconds until a command has ended."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def starts() -> dict[str, float]:
    commands = {"help": ("-m", "farandole", "--help"), "import": ("-c", "import farandole"), "bare": ("-c", "pass")}
    return {name: min(start(*command) for _ in range(10)) for name, command in commands.items()}


def idle(settings: Settings, *arguments: str) -> dict[str, float]:
    """Megabytes of a process once it has said that it is ready."""
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment(settings)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout
            said = []
            for line in process.stdout:
                said.append(line)
                if line.startswith("ready") or " ready " in line:
                    rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="utf-8")
                    kilobytes = {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB", rollup, re.M)}
                    private = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
                    return {"resident": round(kilobytes["Rss"] / 1024, 1), "private": round(private / 1024, 1)}
            raise SystemExit("it ended before it was ready:\n" + "".join(said))
        finally:
            process.kill()


async def submit(settings: Settings, count: int) -> float:
    rows = (Row(f"line {number}", number, {"number": number, "text": TEXT}) for number in range(count))
    async with Client(settings) as client:
        await client.submit(Asked(number=-1, text="the topic and its schema are there then"))
        started = time.perf_counter()
        done = [trace_id async for trace_id in client.submit_many(submissions(rows, Asked, key="number"))]
        return len(done) / (time.perf_counter() - started)


def bare_submit(settings: Settings, count: int) -> float:
    topic = settings.topic("jobs.bare")
    make_topics(settings, [topic], settings.partitions)
    writer = Producer({"bootstrap.servers": settings.brokers, "enable.idempotence": True, "linger.ms": 5})
    writer.list_topics(topic, timeout=10)
    started = time.perf_counter()
    for number in range(count):
        produce(writer, topic, f"{number}", TEXT.encode() + bytes(150))  # the envelope's size
    writer.flush()
    return count / (time.perf_counter() - started)


def show(figure: str, **values: Any) -> None:
    print(json.dumps({"figure": figure, **values}), flush=True)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    settings = load_settings(namespace=f"s{secrets.token_hex(4)}")
    took = starts()
    for name in ("help", "import"):
        show(name, seconds=round(took[name], 3), bare=round(took["bare"], 3), times=round(took[name] / took["bare"], 1))
    bare = idle(settings, "-c", BARE, settings.brokers, settings.namespace)
    show("idle", **idle(settings, "-m", "farandole", "run", "agents/classify.py"), bare=bare)
    ours, base = asyncio.run(submit(settings, count)), bare_submit(settings, count)
    show("submit", rows_a_second=round(ours), bare=round(base), ratio=round(ours / base, 2))


if __name__ == "__main__":
    main()
