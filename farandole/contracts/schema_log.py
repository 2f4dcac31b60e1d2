"""The compacted topic that holds every schema ever written with, so that the log describes itself."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterable
from typing import Any

from farandole import kafka
from farandole.contracts.codec import Contract, Writer, writer
from farandole.errors import ConfigurationError, Unreachable
from farandole.kafka import KafkaException, TopicPartition
from farandole.settings import Settings

log = logging.getLogger("farandole.schemas")

#: Name of the topic, behind the namespace. Key: the fingerprint in hex (as on the wire); value: the schema's JSON.
SCHEMA_TOPIC = "farandole.schemas"

#: What the broker, and its client, say of a topic that is not there.
_MISSING = (
    kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
    kafka.KafkaError._UNKNOWN_PARTITION,
    kafka.KafkaError._UNKNOWN_TOPIC,
)


class SchemaLog:
    """What the schema topic holds, by fingerprint, as far as it was read. `read_on` is for one thread at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.topic = settings.topic(SCHEMA_TOPIC)  #: as the broker calls it
        self._writers: dict[bytes, Writer] = {}
        self._declared: dict[str, Writer] = {}
        self._next = 0
        self._last: tuple[int, Any] | None = None  #: offset and timestamp of the last record that was read

    def add(self, known: Writer, *, latest: bool = True) -> Writer:
        """Hold a schema; of two with one fingerprint the one that says what its events mean, the later one if both do.

        Without `latest` it was found by its id, so that nothing tells whether it is later than what is held.
        """
        held = self._writers.get(known.fingerprint)
        if held is None or (known.declared and (latest or not held.declared) and held.schema != known.schema):
            self._writers[known.fingerprint] = held = known
        if known.declared:
            if latest or known.name not in self._declared:
                self._declared[known.name] = known
            for earlier in known.aliases:  # a stranger may write by it still, and never has one been declared
                self._declared.setdefault(earlier, known)
        return held

    def get(self, fingerprint: bytes) -> Writer | None:
        """The schema of `fingerprint`, or None."""
        return self._writers.get(fingerprint)

    def latest(self, name: str) -> Writer | None:
        """The last schema of this full name that says what its events mean, as far as the topic was read."""
        return self._declared.get(name)

    def names(self) -> list[str]:
        """The full names of those that say what their events mean."""
        return sorted({declared.name for declared in self._declared.values()})

    def meaning(self, written: Writer) -> Writer:
        """The schema that says what events of this name mean (stage, ending): `written`, or the latest one that does."""
        return written if written.declared else self._declared.get(written.name, written)

    def unknown(self, fingerprints: Iterable[bytes]) -> set[bytes]:
        """Those of `fingerprints` that were not read yet."""
        return set(fingerprints) - self._writers.keys()

    def read_on(self) -> None:
        """Read from where the last reading ended to the present end of the topic. Raises Unreachable."""
        reader = kafka.consumer(self._settings, f"{self.topic}.{uuid.uuid4().hex}")
        place = TopicPartition(self.topic, 0)
        try:
            _, end = reader.get_watermark_offsets(place, timeout=kafka.ANSWER)
            if not self._goes_on(reader):
                self._next = 0  # the topic was made again, or its last record rewritten: all is read, which is little
            reader.assign([TopicPartition(self.topic, 0, self._next or kafka.OFFSET_BEGINNING)])
            deadline = time.monotonic() + kafka.ANSWER
            while self._next < end:
                if time.monotonic() > deadline:
                    raise Unreachable(f"topic {self.topic} could not be read to its end within {kafka.ANSWER:.0f} s")
                for message in reader.consume(500, 0.2):
                    self._take(message, end)
        except KafkaException as failure:
            error = kafka.error_of(failure)
            told = f"cannot be read: {error.str()}"
            if error.code() in _MISSING:
                told = "is missing: `farandole topics`, or the first agent that starts, creates it"
            raise Unreachable(f"topic {self.topic} {told}") from failure
        finally:
            reader.close()

    def _goes_on(self, reader: kafka.Consumer) -> bool:
        """Whether the last record that was read lies where it lay; a topic that was made again has others there."""
        if self._last is None:
            return True
        reader.assign([TopicPartition(self.topic, 0, self._last[0])])
        found = reader.consume(1, kafka.ANSWER)
        if not found:
            raise Unreachable(f"topic {self.topic} could not be read within {kafka.ANSWER:.0f} s")
        return found[0].error() is None and (found[0].offset(), found[0].timestamp()) == self._last

    def _take(self, message: kafka.Message[bytes, bytes], end: int) -> None:
        error = message.error()
        if error and error.code() == kafka.KafkaError._PARTITION_EOF:
            self._next = max(self._next, message.offset() or end)  # past compacted records and markers
        elif error:
            raise KafkaException(error)
        else:
            self._next = (message.offset() or 0) + 1
            self._last = message.offset() or 0, message.timestamp()
            value = message.value()
            if value is None:
                return  # deleted: what was read of it before stays good
            try:
                self.add(writer(json.loads(value)))
            except (ValueError, RecursionError, ConfigurationError) as bad:
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
        why = (failures or ["no answer; `farandole topics --check` says whether it is there"])[0]
        raise Unreachable(f"schemas could not be written to {settings.topic(SCHEMA_TOPIC)}: {why}")
