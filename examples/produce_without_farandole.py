"""Put a mail on the ingest topic with confluent-kafka and fastavro alone: what any Kafka client, in any language, may do.

    python examples/produce_without_farandole.py                        # the whole envelope: the producer names the job
    python examples/produce_without_farandole.py --payload-only KEY     # the mail alone: the key names the job

The broker is the one of KAFKA_BOOTSTRAP_SERVERS, else that of `farandole up`. Prints what it sent, as JSON.
"""

import argparse
import json
import os
import sys
import time
import uuid
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Producer

ROOT = Path(__file__).parents[1]
#: The contract of the ingest topic, a file like any other (`farandole schemas write` derives it).
SCHEMA: dict[str, Any] = json.loads((ROOT / "schemas" / "jobs.Submitted.avsc").read_text(encoding="utf-8"))
#: The fields that say whose event it is and where it stands; a producer may leave all of them to the reader.
ENVELOPE = (
    "event_id", "trace_id", "causation_id", "occurred_at", "emitted_by", "run", "hop", "attempt", "scope_id", "part",
    "parts", "tenant",
)  # fmt: skip


def main() -> None:
    given = arguments()
    now = time.time_ns() // 1000  # times are microseconds since 1970, UTC
    mail = {
        "message_id": given.message_id,
        "sender": "Customer One <customer.one@example.com>",
        "subject": "Where is my order A-10423?",
        "text": "Hello, it has not arrived yet. Could you tell me where it is?",
        "received_at": now,
        "source": "elsewhere",
    }
    if given.payload_only:
        schema = SCHEMA | {"fields": [field for field in SCHEMA["fields"] if field["name"] not in ENVELOPE]}
        event, key = mail, given.payload_only
    else:  # ids are UUIDs in lower case; the rest of the envelope has defaults
        job = str(uuid.uuid4())
        event = mail | {"event_id": str(uuid.uuid4()), "trace_id": job, "occurred_at": now, "emitted_by": "elsewhere"}
        schema, key = SCHEMA, job
    send(given, schema, event, key)
    sent = {"topic": given.namespace + SCHEMA["topic"], "key": key, "message_id": mail["message_id"]}
    sys.stdout.write(json.dumps(sent) + "\n")


def send(given: argparse.Namespace, schema: dict[str, Any], event: dict[str, Any], key: str) -> None:
    """Avro's single-object encoding: two bytes, the schema's fingerprint, the record. The schema goes first, to the topic
    where every reader looks it up; writing it again does no harm."""
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    fingerprint = bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))
    record = BytesIO()
    record.write(b"\xc3\x01" + fingerprint)
    fastavro.schemaless_writer(record, fastavro.parse_schema(schema), event, strict_allow_default=True)
    producer = Producer(
        {"bootstrap.servers": given.brokers, "partitioner": "murmur2_random"}
    )  # as Java clients place keys
    for topic, name, value in (
        ("farandole.schemas", fingerprint.hex(), json.dumps(schema).encode()),
        (SCHEMA["topic"], key, record.getvalue()),
    ):
        producer.produce(given.namespace + topic, key=name, value=value, on_delivery=delivered)
        if producer.flush(20):
            raise SystemExit(f"no broker answers at {given.brokers}")


def delivered(error: object, _record: object) -> None:
    if error:
        raise SystemExit(f"the broker refused it: {error}")


def arguments() -> argparse.Namespace:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--payload-only", metavar="KEY", help="send no envelope; a key sent twice is one job")
    words.add_argument("--message-id", default=f"{uuid.uuid4()}@example.com")
    words.add_argument("--brokers", default=os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or local_broker())
    words.add_argument("--namespace", default=os.environ.get("FARANDOLE_NAMESPACE", ""))
    given = words.parse_args()
    given.namespace = f"{given.namespace}." if given.namespace else ""
    return given


def local_broker() -> str:
    try:
        found = json.loads((ROOT / ".farandole" / "endpoints.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SystemExit("no broker: set KAFKA_BOOTSTRAP_SERVERS, or `farandole up` starts one") from None
    return str(found["kafka_bootstrap_servers"])


if __name__ == "__main__":
    main()
