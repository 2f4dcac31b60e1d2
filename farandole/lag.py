"""How far consumer groups are behind the log, asked from outside: in records, and how old the oldest of them is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from farandole import kafka
from farandole.errors import Unreachable
from farandole.kafka import KafkaError, KafkaException, TopicPartition
from farandole.settings import Settings

K = TypeVar("K")

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


#: Answers of a broker that has just learned of a topic or a group, or is about to.
_SOON = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}
#: Seconds until such a question is asked again.
_PAUSE = 0.1


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
    broker = Broker(settings)
    there = broker.partitions()
    return broker.ends((topic, number) for topic, number in places if number < there.get(topic, 0))


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
        """The same, of partitions that are known to exist: it is waited for one that has no leader yet."""
        first, last = kafka.OffsetSpec.earliest(), kafka.OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = set(places)
        lows, highs = (self._answers(asked, partial(self._ask_offsets, spec)) for spec in (first, last))
        return {place: Span(lows[place].offset, highs[place].offset) for place in lows.keys() & highs.keys()}

    def _ask_offsets(self, spec: kafka.OffsetSpec, places: set[Place]) -> dict[Place, Future[Any]]:
        futures = self._admin.list_offsets(
            {TopicPartition(*place): spec for place in places},
            isolation_level=kafka.IsolationLevel.READ_COMMITTED,
            request_timeout=PATIENCE,
        )
        return {(part.topic, part.partition): future for part, future in futures.items()}

    def groups(self, names: Iterable[str]) -> dict[str, Group]:
        """Every group, those that do not exist with no offsets. Raises Unreachable when the broker is away."""
        asked = set(names)
        offsets = self._answers(asked, self._ask_committed)
        members = self._answers(asked, self._ask_members)
        found = {}
        for name in asked:
            parts = offsets[name].topic_partitions if name in offsets else []
            stored = {(part.topic, part.partition): part.offset for part in parts if not part.error}
            found[name] = Group(stored, len(members[name].members) if name in members else None)
        return found

    def _ask_committed(self, groups: set[str]) -> dict[str, Future[Any]]:
        one, ask = kafka.ConsumerGroupTopicPartitions, self._admin.list_consumer_group_offsets  # takes one at a time
        return {name: ask([one(name)], require_stable=False, request_timeout=PATIENCE)[name] for name in groups}

    def _ask_members(self, groups: set[str]) -> dict[str, Future[Any]]:
        return dict(self._admin.describe_consumer_groups(sorted(groups), request_timeout=PATIENCE))

    def oldest(self, positions: dict[Place, int], seconds: float) -> dict[Place, int | None]:
        """Kafka's timestamp (ms) of the first record at or behind each position; None where there is none, only the ends of
        transactions. Without those that took longer than `seconds`.

        Read by a consumer that is in no group: nobody's position moves.
        """
        if not positions:
            return {}
        few = {"queued.min.messages": 1, "fetch.message.max.bytes": 65_536, "fetch.queue.backoff.ms": 10}
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
                    reader.pause(
                        [TopicPartition(*place)]
                    )  # an answer holds one large batch at most: leave it to the others
        finally:
            reader.close()
        return found

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The broker's ids of the topics that exist. Raises Unreachable when the broker is away."""
        found = self._answers(set(topics), self._ask_topics)
        return {name: str(one.topic_id) for name, one in found.items()}

    def _ask_topics(self, topics: set[str]) -> dict[str, Future[Any]]:
        return dict(self._admin.describe_topics(kafka.TopicCollection(sorted(topics)), request_timeout=PATIENCE))

    def _answers(self, asked: set[K], ask: Callable[[set[K]], dict[K, Future[Any]]]) -> dict[K, Any]:
        """What the broker has of what is asked. Raises Unreachable for what did not come in time."""
        found: dict[K, Any] = {}
        deadline = time.monotonic() + PATIENCE
        if asked:
            self.partitions()  # a request that finds no broker, and times out, can end the process (librdkafka 2.16)
        while asked:
            futures, asked = ask(asked), set()
            wait(futures.values(), timeout=2 * PATIENCE)
            for name, future in futures.items():
                try:
                    found[name] = future.result(0)
                except TimeoutError:
                    raise Unreachable(f"the Kafka broker at {self._settings.brokers} did not answer in time") from None
                except KafkaException as failure:
                    code = kafka.error_of(failure).code()
                    if code in _SOON and time.monotonic() < deadline:
                        asked.add(name)
                    elif code not in _GONE:
                        raise kafka.unreachable(self._settings, failure) from failure
            if asked:
                time.sleep(_PAUSE)
        return found


def _is_final(error: KafkaError | None) -> bool:
    """Whether nothing more comes of a partition; other errors pass."""
    return error is not None and error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET, *_GONE)
