"""The log as an outsider sees it: confluent-kafka and fastavro alone, so that a fault of the runtime cannot hide itself."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]

from tests.eventually import eventually

#: Seconds. An answer takes milliseconds, and none comes while a transaction of the group is pending.
_PENDING = 1.0


@dataclass(frozen=True)
class Logged:
    """A committed record."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    decode: Callable[[bytes], dict[str, Any]]

    @property
    def fields(self) -> dict[str, Any]:
        """The decoded value of a record that is an event."""
        return self.decode(self.value or b"")

    def header(self, name: str) -> str:
        """The last header of that name, as text."""
        found = [value for key, value in self.headers if key == name]
        return (found[-1] or b"").decode() if found else ""


class KafkaLog:
    """Reads and writes topics of one namespace."""

    def __init__(self, brokers: str, namespace: str) -> None:
        self.brokers = brokers
        self.namespace = namespace
        self.admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
        self._schemas: dict[bytes, Any] = {}

    def topic(self, name: str) -> str:
        return f"{self.namespace}.{name}"

    def exists(self, name: str) -> bool:
        return self.topic(name) in self.admin.list_topics(timeout=10).topics

    def read(self, name: str) -> list[Logged]:
        """Every committed record of the topic up to its present end, by partition and offset."""
        found = [self._logged(message) for message in self._messages(name)]
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def fields(self, name: str) -> list[dict[str, Any]]:
        return [record.fields for record in self.read(name)]

    def write(
        self,
        name: str,
        records: Iterable[tuple[bytes | str | None, bytes | None]],
        *,
        partition: int = -1,
        headers: list[tuple[str, bytes | None]] | None = None,
    ) -> None:
        """Produce raw keys and values; every one is acknowledged."""
        failures: list[str] = []
        producer = Producer({"bootstrap.servers": self.brokers, "partitioner": "murmur2_random", "linger.ms": 5})
        for key, value in records:
            place: Any = {"partition": partition} if partition >= 0 else {}
            producer.produce(
                self.topic(name),
                key=key,
                value=value,
                headers=headers,  # type: ignore[arg-type]
                on_delivery=lambda error, _: failures.append(str(error)) if error else None,
                **place,
            )
        assert producer.flush(20) == 0
        assert not failures, failures[0]

    def write_large(self, name: str, key: bytes, value: bytes, headers: list[tuple[str, bytes | None]]) -> None:
        """Produce one record of up to 8 MB; it is acknowledged."""
        failures: list[str] = []
        producer = Producer({"bootstrap.servers": self.brokers, "message.max.bytes": 8 * 1024 * 1024})
        producer.produce(
            self.topic(name), key=key, value=value, headers=headers,  # type: ignore[arg-type]
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )  # fmt: skip
        assert producer.flush(20) == 0
        assert not failures, failures[0]

    def configure(self, name: str, setting: str, value: str) -> None:
        """Set one setting of a topic."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.topic(name))
        resource.add_incremental_config(ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET))
        self.admin.incremental_alter_configs([resource])[resource].result(20)

    def delete(self, name: str) -> None:
        """Delete a topic, and wait until it is gone."""
        self.admin.delete_topics([self.topic(name)])[self.topic(name)].result(20)
        eventually(lambda: not self.exists(name), f"topic {name} is gone")

    def lag(self, group: str, name: str) -> int:
        """Offsets between what the group has committed and the ends of the topic, transaction markers included.

        While a transaction of the group is pending, 1: its marker is still to come. To wait for that would keep whoever
        asks from starting the worker again that has died in it, which ends it at once.
        """
        ends = self._ends(name)
        try:
            reached = {place.partition: place.offset for place in self.positions(group, name, _PENDING)}
        except KafkaException as failure:
            if failure.args[0].code() not in (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT):
                raise
            return 1
        return sum(end - max(reached[partition], start) for partition, (start, end) in ends.items())

    def committed(self, group: str, name: str) -> dict[int, int]:
        """The group's offsets by partition; -1001 where it has none."""
        return {place.partition: place.offset for place in self.positions(group, name)}

    def positions(self, group: str, name: str, seconds: float = 20) -> list[TopicPartition]:
        """The group's offsets and what is committed beside them; waits until no transaction is pending.

        Raises KafkaException when one is for longer.

        Asked by a consumer that does not join: an admin client that meets a coordinator which is only starting ends this
        process (librdkafka issue 5040).
        """
        partitions = self.admin.list_topics(self.topic(name), timeout=10).topics[self.topic(name)].partitions
        reader = self._reader(self.topic(group))
        try:
            return list(reader.committed([TopicPartition(self.topic(name), p) for p in partitions], timeout=seconds))
        finally:
            reader.close()

    def _ends(self, name: str) -> dict[int, tuple[int, int]]:
        reader = self._reader()
        try:
            partitions = reader.list_topics(self.topic(name), timeout=10).topics[self.topic(name)].partitions
            return {
                p: reader.get_watermark_offsets(TopicPartition(self.topic(name), p), timeout=10) for p in partitions
            }
        finally:
            reader.close()

    def _messages(self, name: str) -> list[Message[Any, Any]]:
        reader = self._reader()
        try:
            # asked through the reader, which knows the leaders then: by itself it looks for them after half a second
            partitions = reader.list_topics(self.topic(name), timeout=10).topics[self.topic(name)].partitions
            reader.assign([TopicPartition(self.topic(name), p, OFFSET_BEGINNING) for p in partitions])
            open_partitions, found = set(partitions), []
            while open_partitions:
                if (message := reader.poll(1.0)) is None:
                    continue
                error = message.error()
                if error and error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition() or 0)
                else:
                    assert error is None, error
                    found.append(message)
            return found
        finally:
            reader.close()

    def _reader(self, group: str = "") -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": group or uuid.uuid4().hex,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
            }
        )

    def _logged(self, message: Message[Any, Any]) -> Logged:
        headers: Any = message.headers() or []
        return Logged(
            message.partition() or 0, message.offset() or 0, message.key(), message.value(), headers, self.decode
        )

    def decode(self, value: bytes) -> dict[str, Any]:
        """The fields of a single-object Avro value, by the schemas on the log."""
        if value[2:10] not in self._schemas:
            for message in self._messages("farandole.schemas"):
                schema = json.loads(message.value() or b"")
                self._schemas[bytes.fromhex((message.key() or b"").decode())] = fastavro.parse_schema(schema)
        fields: Any = fastavro.schemaless_reader(BytesIO(value[10:]), self._schemas[value[2:10]], None)
        return dict(fields)
