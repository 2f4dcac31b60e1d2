"""The projector from Kafka to committed rows, beside raw COPY of the same rows, and refolding; one run, one machine.

    python benchmarks/projection.py [jobs=20000]          # KAFKA_BOOTSTRAP_SERVERS and DATABASE_URL, or `farandole up`

Prints one JSON line a figure, rates in events a second. `copy` is the limit: COPY of such rows into such a table, in
batches of 2,000, by psycopg's own row writer. `projection` starts with the first row there and ends with the last.
"""

from __future__ import annotations

import datetime
import json
import random
import secrets
import statistics
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from farandole import envelope, ids, kafka, postgres, projections, reading, topics
from farandole.contracts import codec, schema_log
from farandole.event import Event
from farandole.migrate import migrate
from farandole.postgres import Connection, sql
from farandole.project import find_project
from farandole.projector import run_projector
from farandole.settings import Settings, load_settings

BATCH = 2000


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


def produce(settings: Settings, jobs: int) -> list[tuple[Any, ...]]:
    """Put the jobs into Kafka, stage by stage; returns the rows that raw COPY writes."""
    contracts = [codec.contract(event, settings.flow) for event in FLOW]
    topics.ensure(settings, topics.of_events(settings, FLOW))
    schema_log.publish(settings, contracts)
    producer, rows = kafka.producer(settings), []
    for job in range(jobs):
        fields: dict[str, Any] | None = None
        for hop, (event, contract) in enumerate(zip(FLOW, contracts, strict=True)):
            emitter = envelope.Emitter(f"agent-{event.__event__.stage}", "1")
            name = contract.writer.name
            fields = (
                envelope.follow([fields], emitter, name, 0)
                if fields
                else envelope.begin(ids.new_trace_id(), emitter, name)
            )
            payload = event(subject="hello world", text="x" * 100, category="billing", confidence=93)
            value = contract.encode(fields, payload)
            producer.produce(settings.topic(contract.topic), key=envelope.key_of(fields), value=value)
            cause = fields["causation_id"] and UUID(fields["causation_id"])
            rows.append(
                (
                    UUID(fields["event_id"]),
                    UUID(fields["trace_id"]),
                    name,
                    event.__event__.stage,
                    str(emitter),
                    hop,
                    1,
                    cause,
                    datetime.datetime.now(datetime.UTC),
                    contract.topic,
                    0,
                    job,
                    value,
                    payload.model_dump_json(),
                )
            )
        producer.poll(0)
    producer.flush()
    random.Random(1).shuffle(rows)
    return rows


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


def projection(settings: Settings, connection: Connection[Any], events: int) -> float:
    """Run the real projector until every event is there."""
    stop = threading.Event()
    service = threading.Thread(target=run_projector, args=(settings, find_project(), stop))
    service.start()
    first, start = 0, 0.0
    while True:
        row = connection.execute("SELECT coalesce(sum(next_offset), 0)::bigint FROM projector_offset").fetchone()
        there = row[0] if row else 0
        if there and not first:
            first, start = there, time.perf_counter()
        if there >= events:
            break
        time.sleep(0.05)
    seconds = time.perf_counter() - start
    stop.set()
    service.join()
    return (events - first) / seconds


def journeys(connection: Connection[Any], traces: Iterable[str]) -> float:
    """Median milliseconds to read the journey of a job."""
    times = []
    for trace in traces:
        start = time.perf_counter()
        reading.journey(connection, trace)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    settings = load_settings(namespace="b" + secrets.token_hex(3))
    rows = produce(settings, jobs)
    migrate(settings)
    found = projections.discover(find_project())
    with postgres.connect(settings) as connection:
        limit = copy(connection, rows)
        print(json.dumps({"what": "copy", "events_per_s": round(limit)}), flush=True)
        rate = projection(settings, connection, len(rows))
        print(json.dumps({"what": "projection", "events_per_s": round(rate), "of_copy": round(rate / limit, 2)}))
        for name in (projections.CORE, None):
            start = time.perf_counter()
            events = projections.refold(settings, found, name)
            seconds = time.perf_counter() - start
            print(json.dumps({"what": f"refold {name or 'all'}", "events_per_s": round(events / seconds)}), flush=True)
        print(json.dumps({"what": "journey", "p50_ms": round(journeys(connection, [row[1] for row in rows[::97]]), 2)}))
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(settings.schema_name)))


if __name__ == "__main__":
    main()
