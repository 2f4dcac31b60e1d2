"""The baselines: what bare clients do on the same work, with nothing of the runtime between them and the broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from io import BytesIO
from typing import Any

import fastavro
from confluent_kafka import Consumer, Producer

_UUID = {"type": "string", "logicalType": "uuid"}
SCHEMA: Any = fastavro.parse_schema(
    {
        "type": "record",
        "name": "bench.Classified",
        "fields": [
            {"name": "event_id", "type": _UUID},
            {"name": "trace_id", "type": _UUID},
            {"name": "causation_id", "type": ["null", _UUID]},
            {"name": "occurred_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "emitted_by", "type": "string"},
            {"name": "attempt", "type": "int"},
            {"name": "hop", "type": "int"},
            {"name": "category", "type": "string"},
            {"name": "urgency", "type": "string"},
            {"name": "text", "type": "string"},
        ],
    }
)


def encode(event: dict[str, Any]) -> bytes:
    out = BytesIO(b"\0\0\0\0\1")
    out.seek(5)
    fastavro.schemaless_writer(out, SCHEMA, event)
    return out.getvalue()


def decode(value: bytes) -> dict[str, Any]:
    data = BytesIO(value)
    data.seek(5)
    event: Any = fastavro.schemaless_reader(data, SCHEMA, None)
    return dict(event)


def produce(producer: Producer, topic: str, key: bytes | str | None, value: bytes) -> None:
    while True:
        try:
            return producer.produce(topic, key=key, value=value)
        except BufferError:
            producer.poll(0.01)


def consumer(brokers: str, group: str, **more: Any) -> Consumer:
    """One that reads what is committed, from the beginning, and commits nothing by itself."""
    return Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            **more,
        }
    )


def hop(brokers: str, source: str, sink: str, events: int, batch: int) -> float:
    """Events a second of one exactly-once hop: consume, decode, derive an id, encode, produce, commit."""
    group = uuid.uuid4().hex
    reader = consumer(brokers, group)
    writer = Producer(
        {"bootstrap.servers": brokers, "linger.ms": 5, "compression.type": "lz4", "transactional.id": group}
    )
    writer.init_transactions(30)
    reader.subscribe([source])
    records: list[Any] = []
    while not records:
        records = reader.consume(batch, 0.5)
    start, done = time.perf_counter(), 0
    while True:
        writer.begin_transaction()
        for record in records:
            event = decode(record.value() or b"")
            event["causation_id"], event["event_id"] = event["event_id"], uuid.uuid5(event["event_id"], "enrich")
            event["hop"] += 1
            produce(writer, sink, record.key(), encode(event))
        done += len(records)
        writer.send_offsets_to_transaction(reader.position(reader.assignment()), reader.consumer_group_metadata())
        writer.commit_transaction()
        if done >= events:
            break
        records = []
        while not records:
            records = reader.consume(batch, 0.5)
    rate = done / (time.perf_counter() - start)
    reader.close()
    return rate


def echo(brokers: str, source: str, sink: str, group: str, stop: Callable[[], bool], ready: Callable[[], None]) -> None:
    """One exactly-once hop, bytes in and bytes out, one transaction for whatever has arrived; until told to stop."""
    reader = consumer(brokers, group, **{"fetch.wait.max.ms": 100})
    writer = Producer({"bootstrap.servers": brokers, "linger.ms": 0, "transactional.id": group})
    writer.init_transactions(30)
    reader.subscribe([source], on_assign=lambda *_: ready())
    while not stop():
        first = reader.poll(0.1)
        if first is None or first.error():
            continue
        writer.begin_transaction()
        for record in (first, *reader.consume(500, 0)):
            produce(writer, sink, record.key(), record.value() or b"")
        writer.send_offsets_to_transaction(reader.position(reader.assignment()), reader.consumer_group_metadata())
        writer.commit_transaction()
    reader.close()
