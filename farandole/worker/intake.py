"""The Kafka thread of a worker: it owns the consumer, keeps polling whatever happens, and knows what is held."""

from __future__ import annotations

import asyncio
import logging
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from farandole import kafka
from farandole.errors import Stopped, Unreachable
from farandole.kafka import KafkaError, KafkaException, TopicPartition
from farandole.settings import Settings
from farandole.worker.batch import Batch, Held, Item, Plan

log = logging.getLogger("farandole.intake")

#: Seconds. Bounds how late a rebalance or a stop is noticed.
_POLL = 0.1

#: Seconds. Room usually comes back within this; pausing throws away what the client has fetched.
_PATIENCE = 0.2

#: Bytes of fetched records that wait for the worker, whatever their number.
_MAX_WAITING_BYTES = 32 * 1024 * 1024


class Intake:
    """Reads one topic as a member of the group; hands over batches, takes back positions."""

    def __init__(self, settings: Settings, topic: str, group: str, instance: str) -> None:
        self._settings = settings
        self._topic = topic
        self._consumer = kafka.consumer(settings, group, **{"group.instance.id": instance})
        self._held: dict[tuple[str, int], Held] = {}
        self._waiting: list[Item] = []
        self._waiting_bytes = 0
        self._lock = threading.RLock()  # guards _held's `lost`, _waiting and _in_flight
        self._room = threading.Event()
        self._settled = threading.Event()
        self._in_flight: Batch | None = None
        self._paused = False
        self._metadata: Any = None
        self._stale = True
        self._refreshed = threading.Event()
        self._closing = threading.Event()
        self._failure: BaseException | None = None
        self._notify: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=self._run, name=f"kafka-{group}", daemon=True)

    # --- for the worker ---------------------------------------------------------------------------------------------

    async def batches(self, stop: asyncio.Event) -> AsyncIterator[Batch]:
        """Batches, one at a time: the next one comes when the last was given back with `settled`. Ends when stopped.

        Raises the Kafka thread's failure, if it had one.
        """
        wake = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._notify = lambda: loop.call_soon_threadsafe(wake.set)
        self._thread.start()
        while not stop.is_set():
            if self._failure:
                raise self._failure
            wake.clear()
            batch = self._take()
            if batch:
                yield batch
                continue
            waits = [asyncio.ensure_future(wake.wait()), asyncio.ensure_future(stop.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()

    def plan(self, batch: Batch) -> Plan | None:
        """What of `batch` may be committed now; None when nothing of it is held.

        The group metadata may be older than this moment, never newer than what is known to be held: a stale generation is
        refused by the group, work of a partition lost since is left out here.
        """
        with self._lock:
            items, ends = batch.finished()
            items = [item for item in items if not item.held.lost]
            ends = {held: end for held, end in ends.items() if not held.lost}
            metadata = self._metadata
        return Plan(items, ends, metadata) if ends else None

    def refresh(self) -> None:
        """Have the Kafka thread look at the group again, after it refused a commit. Waits, bounded."""
        self._refreshed.clear()
        self._stale = True
        self._room.set()
        self._refreshed.wait(2.0)

    def committed(self, plan: Plan) -> None:
        """Note the positions that a commit has made durable."""
        for held, end in plan.ends.items():
            held.committed = end

    def settled(self) -> None:
        """The batch in flight is done with: committed, or given up."""
        with self._lock:
            self._in_flight = None
            self._settled.set()

    def close(self) -> None:
        """Leave the group; what was not committed is read again by whoever comes next."""
        self._closing.set()
        self.settled()
        if self._thread.is_alive():
            self._thread.join()
        else:
            self._consumer.close()

    # --- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._consumer.subscribe([self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
            while not self._closing.is_set():
                self._poll()
                self._look_at_group()
                self._notify()
                self._balance()
        except BaseException as failure:  # noqa: BLE001  whatever ended the thread must end the worker, with its reason
            self._fail(failure)
        finally:
            self._consumer.close()

    def _poll(self) -> None:
        first = self._consumer.poll(_POLL)
        if first is None:
            return
        messages = [first, *self._consumer.consume(self._settings.batch, 0)]
        with self._lock:  # an end must never be seen before the records that lie below it
            for message in messages:
                held = self._held.get((message.topic() or "", message.partition() or 0))
                error = message.error()
                if error:
                    self._on_error(error, held, message)
                elif held:
                    record = kafka.record_of(message)
                    held.end = record.offset + 1
                    self._waiting.append(Item(record, held))
                    self._waiting_bytes += len(record.value or b"")

    def _on_error(self, error: KafkaError, held: Held | None, message: kafka.Message[bytes, bytes]) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            if held:
                held.end = max(held.end, message.offset() or 0)  # past transaction markers, so that lag 0 can be committed
        elif code == KafkaError._AUTO_OFFSET_RESET:
            raise Stopped(
                f"gap: {message.topic()} [{message.partition()}] no longer has offset {message.offset()} ({error.str()}); "
                "records were deleted before this group read them; move its offset by hand to go on"
            )
        elif error.fatal():
            raise Stopped(f"the consumer failed: {error.str()}")
        else:
            log.warning("broker: %s", error.str())

    def _look_at_group(self) -> None:
        """Take the group metadata after a rebalance, or when asked. Only on this thread: the client library lets one
        thread at a time into a consumer, and poll() is nearly always in it."""
        if not self._stale or not self._held:
            return
        metadata = self._consumer.consumer_group_metadata()
        if _generation(metadata) < 0:
            return  # not a member yet; the broker would take offsets under such metadata for any live group
        with self._lock:
            self._metadata, self._stale = metadata, False
        self._refreshed.set()

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
            if self._metadata is None:
                return None  # not a member of the group yet: nothing could be committed
            items, self._waiting = self._waiting[: self._settings.batch], self._waiting[self._settings.batch :]
            self._waiting_bytes -= sum(len(item.record.value or b"") for item in items)
            batch = Batch(items, {item.held: item.record.offset + 1 for item in items})
            waiting = {item.held for item in self._waiting}
            for held in self._held.values():  # nothing of these waits: their end, markers included, can be committed
                if held not in waiting and held.end > held.committed:
                    batch.ends[held] = held.end
            if self._full():
                self._room.clear()
            else:
                self._room.set()
            if not batch.ends:
                return None
            self._settled.clear()
            self._in_flight = batch
        return batch

    # --- rebalance callbacks, on the thread -------------------------------------------------------------------------

    def _on_assign(self, consumer: kafka.Consumer, places: list[TopicPartition]) -> None:
        self._stale = True  # called, without partitions, on every rebalance: the generation has moved
        try:
            if not places:
                return
            found = self._positions(places)
            for place in found:
                held = Held(place.topic, place.partition, place.offset, place.offset)
                self._held[(place.topic, place.partition)] = held
                if place.offset < 0:
                    place.offset = kafka.OFFSET_BEGINNING  # a group that never committed starts at the beginning
            consumer.incremental_assign(found)
            consumer.resume([TopicPartition(*key) for key in self._held])  # a pause outlives revoke and assign
            self._paused = False
            log.info("assigned %s", _names(places))
        except BaseException as failure:  # noqa: BLE001  the client would swallow it and start without positions
            self._fail(failure)
            self._closing.set()

    def _positions(self, places: list[TopicPartition]) -> list[TopicPartition]:
        """The committed offsets; waits for the transaction of whoever held these partitions before."""
        deadline = time.monotonic() + self._settings.outage_seconds
        while not self._closing.is_set():
            try:
                return list(self._consumer.committed(places, timeout=2.0))
            except KafkaException as failure:
                if not kafka.is_outage(failure) or time.monotonic() > deadline:
                    raise
                log.info("waiting for the last owner's transaction on %s", _names(places))
        raise Unreachable("stopped while waiting for committed offsets")

    def _on_revoke(self, _consumer: kafka.Consumer, places: list[TopicPartition]) -> None:
        """Let the commit in flight end (bounded: the group waits for this member), then drop what is no longer held."""
        leaving = {self._held[key] for key in _keys(places) if key in self._held}
        with self._lock:
            self._forget(leaving)
            busy = self._in_flight and leaving & set(self._in_flight.ends)
        if busy and not self._closing.is_set():
            self._settled.wait(self._settings.session_timeout_ms / 2000)
        self._drop(places, "released")

    def _on_lost(self, _consumer: kafka.Consumer, places: list[TopicPartition]) -> None:
        self._drop(places, "lost")

    def _drop(self, places: list[TopicPartition], word: str) -> None:
        self._stale = True
        with self._lock:
            for key in _keys(places):
                held = self._held.pop(key, None)
                if held:
                    held.lost = True
                    self._forget({held})
        log.info("%s %s", word, _names(places))

    def _forget(self, leaving: set[Held]) -> None:
        self._waiting = [item for item in self._waiting if item.held not in leaving]
        self._waiting_bytes = sum(len(item.record.value or b"") for item in self._waiting)

    def _fail(self, failure: BaseException) -> None:
        self._failure = failure
        self._notify()


def _keys(places: list[TopicPartition]) -> list[tuple[str, int]]:
    return [(place.topic, place.partition) for place in places]


def _names(places: list[TopicPartition]) -> str:
    return ", ".join(f"{place.topic} [{place.partition}]" for place in places) or "nothing"


def _generation(metadata: object) -> int:
    """The generation inside the client's opaque metadata ("CGMDv2:", then an int32): a consumer that has not joined has
    -1, which the broker accepts for any live group."""
    return int(struct.unpack("=i", bytes(metadata)[7:11])[0])  # type: ignore[call-overload]
