"""The compacted topic that holds every schema ever written with, so that the log describes itself."""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Iterable

from farandole import kafka
from farandole.contracts.codec import Contract, Writer, writer
from farandole.errors import ConfigurationError, Poison, Unreachable
from farandole.kafka import KafkaException, TopicPartition
from farandole.settings import Settings

log = logging.getLogger("farandole.schemas")

#: Name of the topic, behind the namespace. Key: the fingerprint in hex (as on the wire); value: the schema's JSON.
SCHEMA_TOPIC = "farandole.schemas"


class SchemaLog:
    """Finds the schema of a fingerprint, reading the schema topic on when it meets a new one. Safe for threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._topic = settings.topic(SCHEMA_TOPIC)
        self._writers: dict[bytes, Writer] = {}
        self._declared: dict[str, Writer] = {}
        self._next = 0
        self._lock = threading.Lock()

    def add(self, known: Writer) -> Writer:
        """Make a schema known that came from elsewhere, such as this process's own event classes."""
        held = self._writers.get(known.fingerprint)
        if held is None or (known.declared and not held.declared):
            self._writers[known.fingerprint] = held = known
        if known.declared:
            self._declared[known.name] = known
        return held

    def meaning(self, written: Writer) -> Writer:
        """The schema that says what events of this name mean (stage, ending): `written`, or the latest one that does."""
        return written if written.declared else self._declared.get(written.name, written)

    def learn(self, fingerprints: Iterable[bytes]) -> None:
        """Make schemas known before records are decoded: one reading of the topic to its end, if any is unknown.

        Raises Unreachable when the topic cannot be read. A schema is published before the first record written with it,
        so after a reading that began when the record was there, `writer` is conclusive.
        """
        if self.unknown(fingerprints):
            with self._lock:
                self._read_on()

    def unknown(self, fingerprints: Iterable[bytes]) -> set[bytes]:
        """Those of `fingerprints` that were not learned yet."""
        return set(fingerprints) - self._writers.keys()

    def writer(self, fingerprint: bytes) -> Writer:
        """The schema of `fingerprint`, as far as it was learned. Raises Poison("unknown_schema") when it was not."""
        found = self._writers.get(fingerprint)
        if found is None:
            raise Poison("unknown_schema", f"schema {fingerprint.hex()} is not in topic {self._topic}")
        return found

    def _read_on(self) -> None:
        """Read from where the last reading ended to the present end of the topic."""
        reader = kafka.consumer(self._settings, f"{self._topic}.{uuid.uuid4().hex}")
        place = TopicPartition(self._topic, 0)
        try:
            _, end = reader.get_watermark_offsets(place, timeout=kafka.ANSWER)
            if end < self._next:
                self._next = 0  # the topic was made again
            reader.assign([TopicPartition(self._topic, 0, self._next or kafka.OFFSET_BEGINNING)])
            deadline = time.monotonic() + kafka.ANSWER
            while self._next < end:
                if time.monotonic() > deadline:
                    raise Unreachable(f"topic {self._topic} could not be read to its end within {kafka.ANSWER:.0f} s")
                for message in reader.consume(500, 0.2):
                    self._take(message, end)
        except KafkaException as failure:
            error = kafka.error_of(failure)
            raise Unreachable(f"topic {self._topic} cannot be read: {error.str()}") from failure
        finally:
            reader.close()

    def _take(self, message: kafka.Message[bytes, bytes], end: int) -> None:
        error = message.error()
        if error and error.code() == kafka.KafkaError._PARTITION_EOF:
            self._next = max(self._next, message.offset() or end)  # past compacted records and markers
        elif error:
            raise KafkaException(error)
        else:
            self._next = (message.offset() or 0) + 1
            try:
                self.add(writer(json.loads(message.value() or b"")))
            except (ValueError, ConfigurationError) as bad:
                log.warning("schema_skipped offset=%s: %s", message.offset(), bad)


def publish(settings: Settings, contracts: Iterable[Contract | Writer]) -> None:
    """Write schemas to the schema topic and wait until the broker has them. Comes before the first record of them."""
    plain = kafka.producer(settings)
    failures: list[str] = []
    for item in contracts:
        schema = item.writer if isinstance(item, Contract) else item
        plain.produce(
            settings.topic(SCHEMA_TOPIC),
            key=schema.fingerprint.hex(),
            value=json.dumps(schema.schema, separators=(",", ":")),
            on_delivery=lambda error, _: failures.append(error.str()) if error else None,
        )
    if plain.flush(kafka.ANSWER) or failures:
        raise Unreachable(
            f"schemas could not be written to {settings.topic(SCHEMA_TOPIC)}: {(failures or ['no answer'])[0]}"
        )
