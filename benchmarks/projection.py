"""The projector from Kafka to committed rows, beside raw COPY of the same rows, and refolding; one run, one machine.

    python benchmarks/projection.py [--jobs 20000] [--bytes 300] [--projectors 1] [--log 0]

It wants KAFKA_BOOTSTRAP_SERVERS and DATABASE_URL, or `farandole up`. Prints one JSON line a figure, rates in events a second.
`copy` is the limit: COPY of such rows into such a table, in batches of 2,000, by psycopg's own row writer. `projection`
starts when the events show themselves (they are of one Kafka transaction; the projectors, processes, wait for it with
their partitions in hand) and ends with the last one committed. `--log` is how many events lie in the log before; 10 million
of 300 bytes take 12 GB. Journeys are read one by one, of jobs from all over the log.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import random
import resource
import secrets
import statistics
import time
from pathlib import Path
from typing import Any
from uuid import UUID

from farandole import envelope, ids, kafka, postgres, projections, reading, topics
from farandole.contracts import codec, schema_log
from farandole.event import Event
from farandole.kafka import Producer
from farandole.migrate import migrate
from farandole.postgres import Connection, sql
from farandole.project import find_project
from farandole.projector import run_projector
from farandole.settings import Settings, load_settings

BATCH = 2000
#: Jobs, of five events each, that one statement writes into the log.
PIECE = 20_000
#: What the smallest event has beside its text, bytes: envelope, framing, the other fields.
BESIDE = 190
WORDS = [secrets.token_hex(number % 4 + 1) for number in range(3000)]


class Submitted(Event, topic="jobs.submitted", stage="submitted"):
    subject: str
    text: str
    category: str
    confidence: int


class Classified(Submitted, topic="jobs.classified", stage="classified"):
    pass


class Enriched(Submitted, topic="jobs.enriched", stage="enriched"):
    pass


class Acted(Submitted, topic="jobs.acted", stage="acted"):
    pass


class Done(Submitted, topic="jobs.done", stage="done", terminal="done"):
    pass


FLOW: tuple[type[Submitted], ...] = (Submitted, Classified, Enriched, Acted, Done)
TABLE = """
DROP TABLE IF EXISTS bench_copy;
CREATE TABLE bench_copy (event_id uuid PRIMARY KEY, trace_id uuid NOT NULL, type text NOT NULL, stage text NOT NULL,
  emitted_by text NOT NULL, hop int NOT NULL, attempt int NOT NULL, causation_id uuid, occurred_at timestamptz NOT NULL,
  topic text NOT NULL, part int NOT NULL, kafka_offset bigint NOT NULL, payload bytea NOT NULL, body jsonb);
CREATE INDEX ON bench_copy (trace_id, hop);
"""


def text(size: int) -> str:
    """Words, so that compression finds something and not much."""
    return " ".join(random.choices(WORDS, k=size // 4))[: max(1, size - BESIDE)]


def produce(settings: Settings, jobs: int, size: int) -> tuple[Producer, list[tuple[Any, ...]]]:
    """Put the jobs into Kafka, in a transaction that is open yet; also returns the rows that raw COPY writes."""
    contracts = [codec.contract(event, settings.flow) for event in FLOW]
    topics.ensure(settings, topics.of_events(settings, FLOW))
    schema_log.publish(settings, contracts)
    producer = kafka.producer(settings, f"bench-{secrets.token_hex(4)}", **{"transaction.timeout.ms": 900_000})
    producer.init_transactions()
    producer.begin_transaction()
    rows: list[tuple[Any, ...]] = []
    for job in range(jobs):
        fields: dict[str, Any] | None = None
        for event, contract in zip(FLOW, contracts, strict=True):
            emitter = envelope.Emitter(f"agent-{event.__event__.stage}", "1")
            name = contract.writer.name
            fields = (
                envelope.follow([fields], emitter, name, 0)
                if fields
                else envelope.begin(ids.new_trace_id(), emitter, name)
            )
            payload = event(subject="hello world", text=text(size), category="billing", confidence=93)
            value = contract.encode(fields, payload)
            producer.produce(settings.topic(contract.topic), key=envelope.key_of(fields), value=value)
            rows.append(_row(fields, event, contract.topic, job, value, payload.model_dump_json()))
        producer.poll(0)
    producer.flush()
    random.Random(1).shuffle(rows)
    return producer, rows


def _row(fields: dict[str, Any], event: type[Event], topic: str, job: int, value: bytes, body: str) -> tuple[Any, ...]:
    cause = fields["causation_id"] and UUID(fields["causation_id"])
    return (
        UUID(fields["event_id"]),
        UUID(fields["trace_id"]),
        event.__name__,
        event.__event__.stage,
        fields["emitted_by"],
        fields["hop"],
        1,
        cause,
        datetime.datetime.now(datetime.UTC),
        topic,
        0,
        job,
        value,
        body,
    )


def copy(connection: Connection[Any], rows: list[tuple[Any, ...]]) -> float:
    columns = (
        "event_id, trace_id, type, stage, emitted_by, hop, attempt, causation_id, occurred_at, topic, part,"
        " kafka_offset, payload, body"
    )
    connection.execute(postgres.script(TABLE))
    start = time.perf_counter()
    for index in range(0, len(rows), BATCH):
        statement = postgres.script(f"COPY bench_copy ({columns}) FROM STDIN")
        with connection.transaction(), connection.cursor().copy(statement) as out:
            for row in rows[index : index + BATCH]:
                out.write_row(row)
    return len(rows) / (time.perf_counter() - start)


def fill(connection: Connection[Any], events: int, size: int) -> None:
    """Put old jobs into the log, as though they had begun one a millisecond until a while ago."""
    statement = postgres.script((Path(__file__).parent / "fill.sql").read_text(encoding="utf-8"))
    jobs = events // len(FLOW)
    for first in range(1, jobs + 1, PIECE):
        given = {"first": first, "last": min(first + PIECE - 1, jobs), "bytes": size}
        connection.execute(statement, given | {"start": time.time_ns() // 1_000_000 - 3_600_000 - jobs})
    connection.execute("VACUUM ANALYZE event_log")


def projection(settings: Settings, connection: Connection[Any], producer: Producer, events: int, number: int) -> float:
    """Let real projectors, in processes, write every event."""
    spawned = multiprocessing.get_context("spawn")
    stop = spawned.Event()
    services = [spawned.Process(target=run_projector, args=(settings, find_project(), stop)) for _ in range(number)]
    for service in services:
        service.start()
    wait(
        connection,
        "SELECT count(owner), count(DISTINCT owner) FROM projector_offset",
        settings.partitions * len(FLOW),
        number,
    )
    there = "SELECT coalesce(sum(next_offset), 0)::bigint, 1 FROM projector_offset"
    producer.commit_transaction()
    first = wait(connection, there, 1, 1)
    start = time.perf_counter()
    wait(connection, there, events, 1)
    seconds = time.perf_counter() - start
    wait(connection, "SELECT count(*), 1 FROM job WHERE outcome = 'done'", events // len(FLOW), 1)
    stop.set()
    for service in services:
        service.join()
    return (events - first) / seconds


def wait(connection: Connection[Any], query: str, *least: int) -> int:
    """Ask until every number is reached; returns the first."""
    while True:
        row = connection.execute(postgres.script(query)).fetchone()
        if row and all(found >= wanted for found, wanted in zip(row, least, strict=True)):
            return int(row[0])
        time.sleep(0.02)


def journeys(connection: Connection[Any]) -> list[float]:
    """Milliseconds to read journeys of jobs from all over the log, sorted."""
    share = "SELECT trace_id FROM job ORDER BY md5(trace_id::text) LIMIT 1000"
    times = []
    for (trace,) in connection.execute(postgres.script(share)).fetchall():
        start = time.perf_counter()
        reading.journey(connection, trace)
        times.append((time.perf_counter() - start) * 1000)
    return sorted(times)


def tell(what: str, **figures: object) -> None:
    print(json.dumps({"what": what} | figures), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000, help="of five events each")
    parser.add_argument("--bytes", type=int, default=300, help="of an event's value")
    parser.add_argument("--projectors", type=int, default=1, help="processes")
    parser.add_argument("--log", type=int, default=0, help="events in the log before")
    given = parser.parse_args()
    settings = load_settings(namespace="b" + secrets.token_hex(3))
    migrate(settings)
    found = projections.discover(find_project())
    projections.install(settings, found)
    with postgres.connect(settings) as connection:
        try:
            run(settings, connection, found, given)
        finally:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(settings.schema_name)))


def run(
    settings: Settings, connection: Connection[Any], found: list[projections.Projection], given: argparse.Namespace
) -> None:
    start = time.perf_counter()
    fill(connection, given.log, given.bytes)
    tell("log", events=given.log, seconds=round(time.perf_counter() - start, 1))
    producer, rows = produce(settings, given.jobs, given.bytes)
    limit = copy(connection, rows)
    tell("copy", events_per_s=round(limit), bytes=len(rows[0][-2]))
    rate = projection(settings, connection, producer, len(rows), given.projectors)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = round((spent.ru_utime + spent.ru_stime) / len(rows) * 1e6, 1)
    tell("projection", events_per_s=round(rate), of_copy=round(rate / limit, 2), processes_cpu_us=cpu)
    for name in (projections.CORE, None):
        start = time.perf_counter()
        events = projections.refold(settings, found, name)
        tell(f"refold {name or 'all'}", events_per_s=round(events / (time.perf_counter() - start)))
    times = journeys(connection)
    tell("journey", p50_ms=round(statistics.median(times), 2), p99_ms=round(times[len(times) * 99 // 100], 2))


if __name__ == "__main__":
    main()
