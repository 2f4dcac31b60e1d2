"""Kafka clients as farandole sets them up. The only module that imports confluent_kafka."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
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
from farandole.threads import Caller

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


@dataclass(slots=True)  # frozen, each would cost two microseconds more
class Record:
    """One record as Kafka stores it, which nobody changes; `topic` is the broker's name, namespace included."""

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
        _headers(message),
    )


#: In place of headers that Python cannot hold: names are bytes on the wire, and need not be text.
UNREADABLE_HEADERS = "farandole.headers_unreadable"


def _headers(message: Message[Any, Any]) -> Headers:
    try:
        return message.headers() or []  # type: ignore[return-value]
    except (UnicodeDecodeError, SystemError):  # the client's own words differ
        place = f"{message.topic()} [{message.partition()}] {message.offset()}"
        log.warning("headers of %s have names that are no text; they are left out", place)
        return [(UNREADABLE_HEADERS, b"")]


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
        "fetch.queue.backoff.ms": 5,
        "topic.metadata.refresh.interval.ms": 1000,
        "allow.auto.create.topics": False,
    }
    return Consumer(config | extra, logger=log)


#: Seconds. Leaving a group, or a last commit, takes milliseconds.
_LEAVE = 10.0


def bounded(call: Callable[[], object]) -> None:
    """A consumer's last calls: one that has lost its coordinator, as after two restarts of the broker, may hang in them for
    ever (librdkafka issues 5456 and 5511). Raises TimeoutError."""
    caller = Caller("consumer")
    caller.within(_LEAVE, call)
    caller.close()


def leave(consumer: Consumer) -> None:
    """Leave the group and close. Where that hangs, the group misses the member when its session ends."""
    try:
        bounded(consumer.close)
    except TimeoutError as hung:
        log.warning("left_without_goodbye: %s", hung)


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
    "bounded",
    "check_broker",
    "consumer",
    "error_of",
    "is_outage",
    "leave",
    "log",
    "producer",
    "record_of",
    "unreachable",
]
