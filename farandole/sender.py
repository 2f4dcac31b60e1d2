"""Sends first events and tells, by the chunk, when the broker has them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from farandole import kafka, topics
from farandole.contracts import publishing
from farandole.contracts.codec import Contract
from farandole.contracts.deriving import topic_of
from farandole.contracts.schema_log import SCHEMA_TOPIC
from farandole.errors import ConfigurationError, ExitCode, FarandoleError, Unreachable
from farandole.event import Event
from farandole.kafka import KafkaError
from farandole.settings import Settings

log = logging.getLogger("farandole.client")

#: Milliseconds. A record that the broker does not acknowledge within this is reported as not sent.
SEND_TIMEOUT_MS = 30_000
#: Bytes. What the producer takes, less the key and Kafka's own fields.
MAX_EVENT_BYTES = kafka.MAX_DEAD_LETTER_BYTES - 4096
#: Seconds. How long a submitter waits before it offers a record again to a full queue.
FULL = 0.01


class Chunk:
    """Records sent together: their jobs, and a future that ends when the broker has answered for each."""

    def __init__(self, trace_ids: list[str]) -> None:
        self.trace_ids = trace_ids
        self._loop = asyncio.get_running_loop()
        self._answered: asyncio.Future[None] = self._loop.create_future()
        self._open = len(trace_ids)
        self._error: KafkaError | None = None
        self._counting = threading.Lock()  # a record that is refused at once is answered in the sending thread

    def answer(self, error: KafkaError | None, _message: Any) -> None:
        """Called by the client library, in the sender's thread, once a record."""
        with self._counting:
            self._error = self._error or error
            self._open -= 1
            through = self._open == 0
        if through and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._finish)

    async def acknowledged(self) -> list[UUID]:
        """The jobs of the chunk, in order, once all its records are on the broker. Raises what went wrong first."""
        await self._answered
        if self._error is None:
            return [UUID(trace_id) for trace_id in self.trace_ids]
        if self._error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            raise FarandoleError(
                "the topic does not exist; `farandole topics` creates what the project declares", ExitCode.NOT_FOUND
            )
        if self._error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            raise FarandoleError("the topic refused an event as too large; its limit is the topic's max.message.bytes")
        if kafka.is_outage(kafka.KafkaException(self._error)) or self._error.code() == KafkaError._MSG_TIMED_OUT:
            raise Unreachable(f"the broker did not acknowledge the event: {self._error.str()}")
        raise FarandoleError(f"the broker refused the event: {self._error.str()}")

    def _finish(self) -> None:
        if not self._answered.done():
            self._answered.set_result(None)


class Sender:
    """A producer and the thread that collects its acknowledgements, so that the event loop never waits for them."""

    def __init__(self, settings: Settings) -> None:
        self._producer = kafka.producer(settings, None, **{"message.timeout.ms": SEND_TIMEOUT_MS})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._collect, name="farandole-sender", daemon=True)
        self._thread.start()

    async def send(
        self, topic: str, key: str, value: bytes, headers: Iterable[tuple[str, bytes]], chunk: Chunk
    ) -> None:
        """Queue one record, once there is room for it; `chunk` hears of it."""
        while True:
            try:
                return self._producer.produce(
                    topic, key=key, value=value, headers=list(headers), on_delivery=chunk.answer
                )
            except BufferError:  # acknowledged or timed out, what is queued makes room
                await asyncio.sleep(FULL)
            except kafka.KafkaException as refused:
                return chunk.answer(kafka.error_of(refused), None)

    def close(self) -> None:
        """Wait for what is on its way, bounded by its own timeout."""
        left = self._producer.flush(SEND_TIMEOUT_MS / 1000)
        self._stop.set()
        self._thread.join()
        if left:
            log.warning("unsent events=%d: the broker did not acknowledge them", left)

    def _collect(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(0.1)


def check_size(value: bytes) -> None:
    """Raise FarandoleError for an event that the producer would not take."""
    if len(value) > MAX_EVENT_BYTES:
        raise FarandoleError(f"the event is too large: {len(value):,} bytes, at most {MAX_EVENT_BYTES:,} are taken")


def announce(settings: Settings, event: type[Event]) -> Contract:
    """Make the event's topic and schema known; comes before the first record of it. Returns what to write it with.

    Raises FarandoleError for a topic that is missing where the settings do not let it be created, and ConfigurationError
    for a view.
    """
    if event.__event__.view:
        raise ConfigurationError(
            f"event {event.__name__} is a view, which is read only; submit the event it is a view of"
        )
    if settings.create_topics:
        topics.ensure(settings, topics.of_events(settings, [event]))
    elif missing := topics.missing(settings, [SCHEMA_TOPIC, topic_of(event, settings.flow)]):
        raise topics.absent(settings.topic(name) for name in missing)
    return publishing.publish(settings, [event])[event]
