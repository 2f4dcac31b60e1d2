"""What is sent, by bare clients (confluent-kafka, fastavro), and what is known of it: the checker holds the log against it."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
from confluent_kafka import KafkaError, Message, Producer

from tests.chaos.schedule import Load
from tests.kafka_log import KafkaLog

#: Topic (without the namespace), partition, offset.
Place = tuple[str, int, int]

#: What a handler may be told to do, with how often.
WORK = {
    "slow.nap": 4, "slow.hang": 2, "slow.flaky": 6, "slow.fail": 3, "slow.reject": 2, "quick.reject": 2,
    "plain.reject": 2, "plain.retry": 8,
}  # fmt: skip

#: How bytes can be wrong.
POISONS = ("empty", "none", "random", "truncated", "unknown schema")


@dataclass(frozen=True, slots=True)
class Intended:
    """An event as it is to be sent. `key` is what the record carries, of most the job."""

    event_id: str
    job: str
    key: bytes | None
    seq: int
    work: str
    skew: float


def intended(load: Load) -> list[Intended]:
    """The events of a load: those of a job in their order, the jobs interleaved, some of one event without a key."""
    chance = random.Random(load.seed)
    words = [word for word, weight in WORK.items() for _ in range(weight)]
    jobs = [_uuid(chance) for _ in range(load.jobs)]
    counts: dict[str, int] = {}
    found = []
    for _ in range(load.events):
        job = chance.choice(jobs)
        loose = chance.random() < 0.02
        if loose:
            job = _uuid(chance)
        seq = counts.get(job, 0)
        counts[job] = seq + 1
        work = (load.work or chance.choice(words)) if chance.random() < load.odd else ""
        key = chance.choice((None, b"")) if loose else job.encode()
        # a job's events come from one producer: only so has it an order; the job's id says which
        skew = load.skew if int(job[-1], 16) % 2 else -load.skew
        found.append(Intended(_uuid(chance), job, key, seq, work, skew))
    return found


def _uuid(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


class Sending:
    """Sends the load from two producers whose clocks are off, and duplicates and poison from others."""

    def __init__(self, log: KafkaLog, load: Load) -> None:
        self._log = log
        self._load = load
        self.events = intended(load)
        self.acknowledged: dict[Place, Intended] = {}
        self.poison: set[Place] = set()
        self.copies = 0
        self.failures: list[str] = []
        self._sent: list[tuple[bytes | None, bytes]] = []
        self._contracts = self._learn()
        self._thread = threading.Thread(target=self._send_all, name="load", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait until all was sent and acknowledged; False when it is not yet."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def duplicate(self, count: int, elsewhere: bool, chance: random.Random) -> None:
        """Send records again as they were: shuffled and to any partition, or in order and where they belong."""
        again = self._sent[-count:]
        if elsewhere:
            chance.shuffle(again)
        producer = self._producer()
        partitions = self._log.admin.list_topics(self._log.topic("jobs.sent"), timeout=20).topics
        most = len(partitions[self._log.topic("jobs.sent")].partitions)
        for key, value in again:
            place = {"partition": chance.randrange(most)} if elsewhere else {}
            self._produce(producer, "jobs.sent", key, value, lambda _: None, **place)
        self.copies += len(again)
        self._flush(producer)

    def poisons(self, topic: str, count: int, chance: random.Random) -> None:
        """Bytes that cannot be an event, on any topic."""
        producer = self._producer()
        for _ in range(count):
            key = chance.choice((None, b"", _uuid(chance).encode(), b"\xff\x00"))
            value = self._wrong(topic, chance.choice(POISONS), chance)
            self._produce(producer, topic, key, value, self.poison.add)
        self._flush(producer)

    def _wrong(self, topic: str, how: str, chance: random.Random) -> bytes | None:
        # of a type that the topic's reader handles: one that it passes over is not looked at closely, and no poison to it
        whole = self._encode(Intended(_uuid(chance), _uuid(chance), None, 0, "", 0), topic)
        return {
            "empty": b"",
            "none": None,
            "random": chance.randbytes(chance.randint(1, 300)),
            "truncated": whole[: chance.randint(1, len(whole) - 1)],
            "unknown schema": whole[:2] + chance.randbytes(8) + whole[10:],
        }[how]

    def _send_all(self) -> None:
        producers = {skew: self._producer() for skew in {event.skew for event in self.events}}
        began = time.monotonic()
        try:
            for number, event in enumerate(self.events):
                due = began + self._load.seconds * number / len(self.events)
                producers[event.skew].poll(max(0.0, due - time.monotonic()))
                value = self._encode(event)
                note = self._noting(event)
                self._produce(producers[event.skew], "jobs.sent", event.key, value, note)
                self._sent.append((event.key, value))
            for producer in producers.values():
                self._flush(producer)
        except Exception as failure:  # noqa: BLE001  a run whose load failed must not pass
            self.failures.append(f"the load: {failure!r}")

    def _noting(self, event: Intended) -> Any:
        return lambda place: self.acknowledged.__setitem__(place, event)

    def _producer(self) -> Producer:
        return Producer({
            "bootstrap.servers": self._log.brokers, "partitioner": "murmur2_random", "enable.idempotence": True,
            "linger.ms": 5, "message.timeout.ms": 120_000, "log_level": 0,
        })  # fmt: skip

    def _produce(
        self, producer: Producer, topic: str, key: bytes | None, value: bytes | None, note: Any, **place: int
    ) -> None:
        def delivered(error: KafkaError | None, message: Message[Any, Any]) -> None:
            if error:
                self.failures.append(f"the broker refused a record of the load: {error}")
            else:
                note((topic, message.partition() or 0, message.offset() or 0))

        producer.produce(self._log.topic(topic), key=key, value=value, on_delivery=delivered, **place)  # type: ignore[arg-type]

    def _flush(self, producer: Producer) -> None:
        if producer.flush(120):
            self.failures.append("records of the load were not acknowledged within 120 s")

    def _learn(self) -> dict[str, tuple[Any, bytes]]:
        """What lies on each topic: the schema, and what every record of it starts with; from the log itself."""
        found = {}
        for record in self._log.read("farandole.schemas"):
            schema = json.loads(record.value or b"")
            prefix = b"\xc3\x01" + bytes.fromhex((record.key or b"").decode())
            if "event_id" in {
                field["name"] for field in schema["fields"]
            }:  # not the one for strangers, without envelope
                found[schema["topic"]] = fastavro.parse_schema(schema), prefix
        return found

    def _encode(self, event: Intended, topic: str = "jobs.sent") -> bytes:
        schema, prefix = self._contracts[topic]
        fields = {
            "event_id": event.event_id, "trace_id": event.job, "seq": event.seq, "work": event.work, "handling": "",
            "occurred_at": time.time_ns() // 1000 + int(event.skew * 1_000_000), "emitted_by": "chaos",
        }  # fmt: skip
        data = BytesIO()
        data.write(prefix)
        known = {field["name"] for field in schema["fields"]}
        fields = {name: value for name, value in fields.items() if name in known}
        fastavro.schemaless_writer(data, schema, fields, strict_allow_default=True)
        return data.getvalue()


def handed_in(load: Load) -> Iterator[tuple[str, int]]:
    """Keys and numbers of the jobs that the project's own client submits."""
    return ((f"chaos {load.seed} {number}", number) for number in range(load.client_jobs))
