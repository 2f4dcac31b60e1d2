"""The jobs of a run, and the records in which some of their events lie more than once."""

from __future__ import annotations

import asyncio

from farandole.client import Client, Submission
from farandole.settings import Settings
from tests.chaos.effects.flow.events import Asked
from tests.kafka_log import KafkaLog

#: Groups in which jobs are submitted, each followed by copies of its events: so that two workers come to one at once.
_GROUPS = 40

_PARTITIONS = 4


def submitted(settings: Settings, log: KafkaLog, jobs: int, twice: int) -> dict[str, bool]:
    """Their trace ids, and whether their mails are to be held: every third. Every fifth job is a poor tenant's.

    Of every `twice`-th one the event lies on other partitions, too.
    """
    found: dict[str, bool] = {}
    together = max(4, jobs // _GROUPS)
    client = Client(settings)
    with asyncio.Runner() as loop:
        for begin in range(0, jobs, together):
            numbers = range(begin, min(begin + together, jobs))
            ids = loop.run(_send(client, numbers))
            found |= {trace_id: n % 3 == 0 for n, trace_id in zip(numbers, ids, strict=True)}
            _copy(log, set(ids[::twice]))
        loop.run(client.close())
    return found


async def _send(client: Client, numbers: range) -> list[str]:
    rows = [
        Submission(Asked(number=n, hold=n % 3 == 0), key=f"job-{n}", tenant="poor" if n % 5 == 0 else None)
        for n in numbers
    ]
    return [str(trace_id) async for trace_id in client.submit_many(rows)]


def _copy(log: KafkaLog, chosen: set[str]) -> None:
    """To the two partitions behind its own: another worker has one of them at least."""
    records = [record for record in log.read("jobs.asked") if str(record.fields["trace_id"]) in chosen]
    for partition in range(_PARTITIONS):
        there = [(r.key, r.value) for r in records if (partition - r.partition) % _PARTITIONS in (1, 2)]
        log.write("jobs.asked", there, partition=partition)
