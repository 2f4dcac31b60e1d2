"""How far consumer groups are behind the log, asked from outside: in records, and how old the oldest of them is."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from farandole import kafka
from farandole.errors import Unreachable
from farandole.kafka import KafkaError, KafkaException, TopicPartition
from farandole.settings import Settings

T = TypeVar("T")

#: A partition: the topic's name on the broker, and its number.
Place = tuple[str, int]

#: Seconds that each question to the broker may take. People wait for the answer, so it is less than a worker's patience.
PATIENCE = 5.0

#: Answers that mean "not there (any more)" rather than "away".
_GONE = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.GROUP_ID_NOT_FOUND,
}


@dataclass(frozen=True, slots=True)
class Span:
    """What a reader of committed records finds in a partition: the first offset, and the one past the last."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group as the broker has it: stable offsets, where there are any, and how many members it has."""

    offsets: dict[Place, int]
    members: int | None  #: None: the broker did not tell


def ends(settings: Settings, places: Iterable[Place]) -> dict[Place, Span]:
    """The spans of these partitions, without those that do not exist. Raises Unreachable when the broker is away."""
    return Broker(settings).ends(places)


class Broker:
    """Questions to the broker, each bounded. Keeps its client: a future fails once its client is collected."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = kafka.admin(settings)

    def partitions(self) -> dict[str, int]:
        """The topics and their partition counts. Raises Unreachable when the broker is away."""
        try:
            found = self._admin.list_topics(timeout=PATIENCE).topics
        except KafkaException as failure:
            raise kafka.unreachable(self._settings, failure) from failure
        return {name: len(topic.partitions) for name, topic in found.items() if topic.error is None}

    def ends(self, places: Iterable[Place]) -> dict[Place, Span]:
        """See `ends`."""
        asked = [TopicPartition(*place) for place in places]
        if not asked:
            return {}
        low, high = kafka.OffsetSpec.earliest(), kafka.OffsetSpec.latest()  # type: ignore[no-untyped-call]
        committed = {"isolation_level": kafka.IsolationLevel.READ_COMMITTED, "request_timeout": PATIENCE}
        first = self._admin.list_offsets(dict.fromkeys(asked, low), **committed)
        last = self._admin.list_offsets(dict.fromkeys(asked, high), **committed)
        lows, highs = self._answers(_by_place(first)), self._answers(_by_place(last))
        return {place: Span(lows[place].offset, highs[place].offset) for place in lows.keys() & highs.keys()}

    def groups(self, names: Iterable[str]) -> dict[str, Group]:
        """Every group, those that do not exist with no offsets. Raises Unreachable when the broker is away."""
        asked = sorted(names)
        if not asked:
            return {}
        one = kafka.ConsumerGroupTopicPartitions
        futures = {
            name: self._admin.list_consumer_group_offsets([one(name)], require_stable=False, request_timeout=PATIENCE)[
                name
            ]
            for name in asked
        }
        described = self._admin.describe_consumer_groups(asked, request_timeout=PATIENCE)
        offsets, members = self._answers(futures), self._answers(described)
        return {
            name: Group(
                {(part.topic, part.partition): part.offset for part in offsets[name].topic_partitions if not part.error}
                if name in offsets
                else {},
                len(members[name].members) if name in members else None,
            )
            for name in asked
        }

    def oldest(self, positions: dict[Place, int], seconds: float) -> dict[Place, int | None]:
        """Kafka's timestamp (ms) of the first record at or behind each position; None where there is none, only the ends of
        transactions. Without those that took longer than `seconds`.

        Read by a consumer that is in no group: nobody's position moves.
        """
        if not positions:
            return {}
        few = {"queued.min.messages": 1, "fetch.message.max.bytes": 1024, "queued.max.messages.kbytes": 1024}
        reader = kafka.consumer(self._settings, self._settings.group("farandole.status"), **few)
        found: dict[Place, int | None] = {}
        try:
            reader.assign([TopicPartition(*place, offset) for place, offset in positions.items()])
            deadline, waiting = time.monotonic() + seconds, set(positions)
            while waiting and (left := deadline - time.monotonic()) > 0:
                message = reader.poll(left)
                if message is None:
                    continue
                place = (message.topic() or "", message.partition() or 0)
                if place in waiting and (message.error() is None or _is_final(message.error())):
                    found[place] = None if message.error() else message.timestamp()[1]
                    waiting.discard(place)
        finally:
            reader.close()
        return found

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The broker's ids of the topics that exist. Raises Unreachable when the broker is away."""
        asked = sorted(topics)
        if not asked:
            return {}
        futures = self._admin.describe_topics(kafka.TopicCollection(asked), request_timeout=PATIENCE)
        return {name: str(found.topic_id) for name, found in self._answers(futures).items()}

    def _answers(self, futures: dict[Any, Future[T]]) -> dict[Any, T]:
        """What came; without what the broker does not have. Raises Unreachable for what did not come."""
        wait(futures.values(), timeout=2 * PATIENCE)
        found: dict[Any, T] = {}
        for name, future in futures.items():
            try:
                found[name] = future.result(0)
            except TimeoutError:
                raise Unreachable(f"the Kafka broker at {self._settings.brokers} did not answer in time") from None
            except KafkaException as failure:
                if kafka.error_of(failure).code() not in _GONE:
                    raise kafka.unreachable(self._settings, failure) from failure
        return found


def _by_place(futures: dict[TopicPartition, Future[T]]) -> dict[Any, Future[T]]:
    return {(part.topic, part.partition): future for part, future in futures.items()}


def _is_final(error: KafkaError | None) -> bool:
    """Whether nothing more comes of a partition; other errors pass."""
    return error is not None and error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET, *_GONE)
