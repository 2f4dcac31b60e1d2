"""The Kafka thread of a worker: it owns the consumer, keeps polling whatever happens, and hands over batches."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable

from farandole import kafka
from farandole.errors import Stopped
from farandole.kafka import KafkaError
from farandole.settings import Settings
from farandole.worker.batch import Batch, Held, Item
from farandole.worker.membership import Membership

log = logging.getLogger("farandole.intake")

#: Seconds. Bounds how late a rebalance or a stop is noticed.
_POLL = 0.1

#: Seconds. Room usually comes back within this; pausing throws away what the client has fetched.
_PATIENCE = 0.2

#: Bytes of fetched records that wait for the worker, whatever their number.
_MAX_WAITING_BYTES = 32 * 1024 * 1024


class Intake:
    """Reads one topic as a member of the group. One batch, of `most` records, is in flight at a time."""

    def __init__(self, settings: Settings, topic: str, group: str, instance: str, most: int) -> None:
        self._settings = settings
        self._most = most
        self._topic = topic
        self._consumer = kafka.consumer(settings, group, **{"group.instance.id": instance})
        self._lock = threading.RLock()  # guards what waits, the batch in flight, and what the membership says of it
        self.membership = Membership(settings, group, self._lock, self._let_go)
        self._waiting: list[Item] = []
        self._waiting_bytes = 0
        self._room = threading.Event()
        self._in_flight: Batch | None = None
        self._settled = threading.Event()
        self._paused = False
        self._notify: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=self._run, name=f"kafka-{group}", daemon=True)

    async def batches(self, stop: asyncio.Event) -> AsyncIterator[Batch]:
        """Batches, one at a time: the next one comes when the last was given back with `settled`. Ends when stopped.

        Raises the Kafka thread's failure, if it had one.
        """
        wake = asyncio.Event()
        loop = asyncio.get_running_loop()
        stopping = asyncio.ensure_future(stop.wait())
        stopping.add_done_callback(lambda _: wake.set())
        self._notify = lambda: loop.call_soon_threadsafe(wake.set)
        self._thread.start()
        try:
            while not stop.is_set():
                if self.membership.failure:
                    raise self.membership.failure
                wake.clear()
                batch = self._take()
                if batch:
                    yield batch
                else:
                    await wake.wait()
        finally:
            stopping.cancel()

    def settled(self) -> None:
        """The batch in flight is done with: committed, or given up."""
        with self._lock:
            self._in_flight = None
            self._settled.set()

    def close(self) -> None:
        """Leave the group; what was not committed is read again by whoever comes next."""
        self.membership.closing.set()
        self.settled()
        if self._thread.is_alive():
            self._thread.join()
        else:
            self._consumer.close()

    def _run(self) -> None:
        member = self.membership
        try:
            self._consumer.subscribe(
                [self._topic], on_assign=self._on_assign, on_revoke=member.on_revoke, on_lost=self._on_lost
            )
            while not member.closing.is_set():
                self._poll()
                member.look_at_group(self._consumer)
                self._notify()
                self._balance()
        except BaseException as failure:  # noqa: BLE001  whatever ended the thread must end the worker, with its reason
            member.failure = failure
            self._notify()
        finally:
            self._consumer.close()

    def _poll(self) -> None:
        first = self._consumer.poll(_POLL)
        if first is None:
            return
        messages = [first, *self._consumer.consume(self._settings.batch, 0)]
        with self._lock:  # an end must never be seen before the records that lie below it
            for message in messages:
                held = self.membership.held.get((message.topic() or "", message.partition() or 0))
                error = message.error()
                if error:
                    self._on_error(error, held, message)
                elif held:
                    record = kafka.record_of(message)
                    held.end = record.offset + 1
                    self._waiting.append(Item(record, held))
                    self._waiting_bytes += len(record.value or b"")
            if self._full():
                self._room.clear()

    def _on_error(self, error: KafkaError, held: Held | None, message: kafka.Message[bytes, bytes]) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            if held:
                held.end = max(
                    held.end, message.offset() or 0
                )  # past transaction markers, so that lag 0 can be committed
        elif code == KafkaError._AUTO_OFFSET_RESET:
            raise Stopped(
                f"gap: {message.topic()} [{message.partition()}] no longer has offset {message.offset()} ({error.str()}); "
                "records were deleted before this group read them; move its offset by hand to go on"
            )
        elif error.fatal():
            raise Stopped(f"the consumer failed: {error.str()}")
        else:
            log.warning("broker: %s", error.str())

    def _full(self) -> bool:
        return len(self._waiting) >= self._settings.batch or self._waiting_bytes >= _MAX_WAITING_BYTES

    def _balance(self) -> None:
        """Pause what nobody can take yet, resume what can be taken again."""
        if not self._paused and self._full() and not self._room.wait(_PATIENCE):
            self._consumer.pause(self._consumer.assignment())
            self._paused = True
        elif self._paused and not self._full():
            self._consumer.resume(self._consumer.assignment())
            self._paused = False

    def _take(self) -> Batch | None:
        with self._lock:
            if not self.membership.joined:
                return None
            items, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            self._waiting_bytes -= sum(len(item.record.value or b"") for item in items)
            ends = {item.held: item.record.offset + 1 for item in items}
            waiting = {item.held for item in self._waiting}
            for held in self.membership.held.values():
                if held not in waiting and held.end > held.committed:
                    ends[held] = held.end  # nothing more of it waits: what was skipped (markers) can be committed too
            if not self._full():
                self._room.set()
            if not ends:
                return None
            self._settled.clear()
            self._in_flight = Batch(items, ends)
            return self._in_flight

    def _let_go(self, leaving: set[Held]) -> None:
        """Partitions are about to be released: forget what waits, let the commit in flight end, bounded."""
        with self._lock:
            self._forget(leaving)
            busy = self._in_flight is not None and leaving & self._in_flight.ends.keys()
        if busy:
            self._settled.wait(self._settings.session_timeout_ms / 2000)

    def _on_assign(self, consumer: kafka.Consumer, places: list[kafka.TopicPartition]) -> None:
        self.membership.on_assign(consumer, places)
        self._paused = False  # the membership has resumed all it holds

    def _on_lost(self, consumer: kafka.Consumer, places: list[kafka.TopicPartition]) -> None:
        self.membership.on_lost(consumer, places)
        with self._lock:
            self._forget({item.held for item in self._waiting if item.held.lost})

    def _forget(self, leaving: set[Held]) -> None:
        self._waiting = [item for item in self._waiting if item.held not in leaving]
        self._waiting_bytes = sum(len(item.record.value or b"") for item in self._waiting)
