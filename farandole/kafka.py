"""Kafka clients as farandole sets them up. The only module that imports confluent_kafka."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from farandole.errors import Unreachable
from farandole.settings import Settings

log = logging.getLogger("farandole.kafka")

#: Seconds. While a broker is away each client says so some twenty times a second; one line in this time tells as much.
_SAME_LINE = 10.0


class _Repeats(logging.Filter):
    """Drops a client's line that differs from a recent one in its numbers alone."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        words, now = re.sub(r"\d+", "", record.getMessage()), time.monotonic()
        if now - self._said.get(words, -_SAME_LINE) < _SAME_LINE:
            return False
        if len(self._said) > 1000:
            self._said.clear()
        self._said[words] = now
        return True


log.addFilter(_Repeats())

Headers = list[tuple[str, bytes | None]]

#: Seconds. A broker that does not answer within this is reported as unreachable.
ANSWER = 10.0

_OUTAGE = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._RESOLVE,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
}


@dataclass(frozen=True, slots=True)
class Record:
    """One record as Kafka stores it; `topic` is the broker's name, namespace included."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def record_of(message: Message[Any, Any]) -> Record:
    """The record in a consumed message that carries no error."""
    return Record(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        message.timestamp()[1],
        message.key(),
        message.value(),
        message.headers() or [],  # type: ignore[arg-type]
    )


def consumer(settings: Settings, group: str, **extra: Any) -> Consumer:
    """A read_committed consumer that commits nothing by itself. The settings' reasons: DESIGN.md, "Kafka settings"."""
    config = {
        "bootstrap.servers": settings.brokers,
        "group.id": group,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": settings.session_timeout_ms,
        "heartbeat.interval.ms": settings.session_timeout_ms // 4,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 100,
        "queued.min.messages": 2000,
        "queued.max.messages.kbytes": 16_384,
        "topic.metadata.refresh.interval.ms": 1000,
        "allow.auto.create.topics": False,
    }
    return Consumer(config | extra, logger=log)


def producer(settings: Settings, transactional_id: str | None = None, **extra: Any) -> Producer:
    """An idempotent producer, transactional when given an id. Keys land where Java clients put them (murmur2)."""
    config: dict[str, Any] = {
        "bootstrap.servers": settings.brokers,
        "partitioner": "murmur2_random",
        "enable.idempotence": True,
        "compression.type": "lz4",
        "linger.ms": 0 if transactional_id else 5,
        "retry.backoff.ms": 1,
        "retry.backoff.max.ms": 100,
        "message.max.bytes": MAX_DEAD_LETTER_BYTES,
        "queue.buffering.max.messages": 1_000_000,
    }
    if transactional_id:
        config |= {"transactional.id": transactional_id, "transaction.timeout.ms": settings.transaction_timeout_ms}
    return Producer(config | extra, logger=log)


#: Bytes. A dead letter holds a whole record of an ordinary topic (1 MiB at most) and its causes beside it.
MAX_DEAD_LETTER_BYTES = 2 * 1024 * 1024


def admin(settings: Settings) -> AdminClient:
    return AdminClient({"bootstrap.servers": settings.brokers}, logger=log)


def error_of(failure: KafkaException) -> KafkaError:
    """The error inside the exception the client raises."""
    found = failure.args[0]
    return found if isinstance(found, KafkaError) else KafkaError(KafkaError._FAIL, str(found))


def is_outage(failure: BaseException) -> bool:
    """Whether the broker is away, as opposed to having said no."""
    return isinstance(failure, KafkaException) and error_of(failure).code() in _OUTAGE


def unreachable(settings: Settings, failure: KafkaException) -> Unreachable:
    """What a person reads when no broker answers."""
    return Unreachable(
        f"no Kafka broker answers at {settings.brokers} ({error_of(failure).str()}); "
        "check KAFKA_BOOTSTRAP_SERVERS or run `farandole up`"
    )


def check_broker(settings: Settings) -> dict[str, int]:
    """The broker's topics and their partition counts. Raises Unreachable when it does not answer."""
    try:
        metadata = admin(settings).list_topics(timeout=ANSWER)
    except KafkaException as failure:
        raise unreachable(settings, failure) from failure
    return {name: len(topic.partitions) for name, topic in metadata.topics.items()}


def committed(
    settings: Settings, group: str, places: list[tuple[str, int]], *, stable: bool = True
) -> dict[tuple[str, int], TopicPartition]:
    """A group's offsets and their metadata, asked from outside; the offset is -1001 where there is none.

    `stable`: not before a pending transaction is decided (_TIMED_OUT meanwhile); else those decided last. A client is made
    for each question: one that was alive while the broker was away may never find it again. A consumer, not an admin
    client, whose answer that comes late can end the process (a failed assertion in librdkafka 2.16).
    """
    client = Consumer(
        {
            "bootstrap.servers": settings.brokers,
            "group.id": group,
            "isolation.level": "read_committed" if stable else "read_uncommitted",
            "enable.auto.commit": False,
        },
        logger=log,
    )
    try:
        found = client.committed([TopicPartition(*place) for place in places], timeout=ANSWER / 4)
    finally:
        threading.Thread(target=client.close, name="close-asker", daemon=True).start()  # it may hang
    for place in found:
        if place.error:
            raise KafkaException(place.error)
    return {(place.topic, place.partition): place for place in found}


def bounds(settings: Settings, places: list[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
    """The first offset that is there and the one past the last; partitions that do not exist are left out."""
    client = admin(settings)
    there = client.list_topics(timeout=ANSWER).topics
    known = [place for place in places if place[0] in there and place[1] in there[place[0]].partitions]
    found: list[dict[tuple[str, int], int]] = []
    for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):  # type: ignore[no-untyped-call]
        asked = {TopicPartition(*place): spec for place in known}
        futures = client.list_offsets(asked, request_timeout=ANSWER) if asked else {}
        found.append({(at.topic, at.partition): future.result().offset for at, future in futures.items()})
    return {place: (found[0][place], found[1][place]) for place in known}


def members(settings: Settings, group: str) -> dict[str, set[tuple[str, int]]] | None:
    """What each member of a settled group holds, by its instance name; None while it shares out, or has no members."""
    client = admin(settings)  # held while its futures run
    future = client.describe_consumer_groups([group], request_timeout=ANSWER / 2)[group]
    try:
        found = future.result(ANSWER)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"members of {group}: no answer")) from None
    if found.state != ConsumerGroupState.STABLE:
        return None
    return {
        member.group_instance_id or member.member_id: {
            (place.topic, place.partition) for place in member.assignment.topic_partitions
        }
        for member in found.members
    }


def partitions(settings: Settings, topics: Iterable[str]) -> set[tuple[str, int]]:
    """Every partition of these topics that there is."""
    known = admin(settings).list_topics(timeout=ANSWER / 2).topics
    return {(name, number) for name in topics if name in known for number in known[name].partitions}


def check_leaders(settings: Settings, topics: Iterable[str]) -> None:
    """Return when the broker answers and each partition of `topics` has a leader. Raises KafkaException when not.

    A producer that learns of a partition without a leader may never learn of the next one (librdkafka 5430).
    """
    known = admin(settings).list_topics(timeout=1.0).topics
    for name in topics:
        for number, partition in (known[name].partitions if name in known else {}).items():
            if partition.leader < 0:
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"{name} [{number}] has no leader"))


def broker_setting(settings: Settings, name: str) -> str | None:
    """What one broker of the cluster says of one of its settings; None when it does not tell."""
    client = admin(settings)
    node = next(iter(client.list_topics(timeout=ANSWER).brokers))
    for future in client.describe_configs(
        [ConfigResource(ConfigResource.Type.BROKER, str(node))], request_timeout=ANSWER
    ).values():
        entry = future.result().get(name)
        return str(entry.value) if entry else None
    return None


def topic_ids(settings: Settings, topics: Iterable[str]) -> dict[str, str]:
    """The broker's id of each topic: a deleted and recreated topic has another, which offsets alone do not show."""
    client = admin(settings)  # a name of its own: its futures fail once it is collected
    futures = client.describe_topics(TopicCollection(list(topics)), request_timeout=ANSWER)
    return {name: str(future.result().topic_id) for name, future in futures.items()}


__all__ = [
    "ANSWER",
    "MAX_DEAD_LETTER_BYTES",
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "AdminClient",
    "ConfigResource",
    "Consumer",
    "ConsumerGroupTopicPartitions",
    "Headers",
    "IsolationLevel",
    "KafkaError",
    "KafkaException",
    "Message",
    "NewTopic",
    "OffsetSpec",
    "Producer",
    "Record",
    "TopicCollection",
    "TopicPartition",
    "admin",
    "bounds",
    "broker_setting",
    "check_broker",
    "check_leaders",
    "consumer",
    "error_of",
    "is_outage",
    "members",
    "partitions",
    "producer",
    "record_of",
    "topic_ids",
    "unreachable",
]
