"""Reads a topic once, from given positions to its present end, outside any group."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping

from farandole import kafka
from farandole.errors import Unreachable
from farandole.kafka import Consumer, KafkaError, KafkaException, Message, Record, TopicPartition
from farandole.settings import Settings

#: Seconds without a record or an end after which the broker counts as away.
_SILENCE = 30.0

#: What a broker says of a partition that it has just made, or is about to lead.
_SOON = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)

#: Seconds until it is asked again.
_PAUSE = 0.1


def since(settings: Settings, topic: str, timestamp_ms: int) -> Iterator[Record]:
    """The committed records from the first one that is not older than `timestamp_ms`; later ones may be older."""
    with _Reader(settings, topic) as reader:
        asked = [TopicPartition(reader.topic, partition, timestamp_ms) for partition in reader.partitions]
        found = reader.consumer.offsets_for_times(asked, timeout=kafka.ANSWER) if asked else []
        yield from reader.read({place.partition: place.offset for place in found})  # none as late: the end


def beyond(settings: Settings, topic: str, positions: Mapping[int, int]) -> Iterator[Record]:
    """The committed records from these positions on; partitions without one from their beginning.

    A position past the end is one of a topic that was made anew since: everything is read.
    """
    with _Reader(settings, topic) as reader:
        found: dict[int, int] = {}
        for partition in reader.partitions:
            low, high = reader.bounds(partition)
            begin = positions.get(partition, low)
            found[partition] = begin if low <= begin <= high else low
        yield from reader.read(found)


def at(settings: Settings, topic: str, partition: int, offset: int, timestamp_ms: int) -> Record | None:
    """The record at one place; None when it is gone, or another one lies there."""
    with _Reader(settings, topic) as reader:
        if partition not in reader.partitions:
            return None
        low, high = reader.bounds(partition)
        if not low <= offset < high:
            return None
        found = next(reader.read({partition: offset}), None)
    return found if found and (found.offset, found.timestamp_ms) == (offset, timestamp_ms) else None


class _Reader:
    """A consumer that is no member of a group. A topic that does not exist has no partitions. Raises Unreachable."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self.topic = settings.topic(topic)
        self.partitions: list[int] = []
        group = f"{settings.group('farandole')}.scan.{uuid.uuid4().hex}"
        self.consumer: Consumer = kafka.consumer(settings, group, **{"auto.offset.reset": "earliest"})
        self._settings = settings

    def __enter__(self) -> _Reader:
        try:
            found = self.consumer.list_topics(self.topic, timeout=kafka.ANSWER).topics[self.topic]
        except KafkaException as failure:
            self.consumer.close()
            raise kafka.unreachable(self._settings, failure) from failure
        self.partitions = [] if found.error else sorted(found.partitions)
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.close()

    def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset and the one past the last; asked again while a new topic has no leader yet."""
        place, deadline = TopicPartition(self.topic, partition), time.monotonic() + kafka.ANSWER
        while True:
            try:
                return self.consumer.get_watermark_offsets(place, timeout=kafka.ANSWER)
            except KafkaException as failure:
                if not kafka.error_of(failure).retriable() and kafka.error_of(failure).code() not in _SOON:
                    raise
                if time.monotonic() > deadline:
                    raise kafka.unreachable(self._settings, failure) from failure
                time.sleep(_PAUSE)

    def read(self, begin: Mapping[int, int]) -> Iterator[Record]:
        """From these offsets to the ends as they are when they are met."""
        self.consumer.assign([TopicPartition(self.topic, partition, offset) for partition, offset in begin.items()])
        unread, heard = set(begin), time.monotonic()
        while unread:
            for message in self.consumer.consume(500, 0.2):
                heard = time.monotonic()
                if self._is_end(message):
                    unread.discard(message.partition() or 0)
                elif message.partition() in unread:
                    yield kafka.record_of(message)
            if time.monotonic() - heard > _SILENCE:
                raise Unreachable(f"topic {self.topic} could not be read to its end: the broker is silent")

    def _is_end(self, message: Message[bytes, bytes]) -> bool:
        error = message.error()
        if error and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        return error is not None
