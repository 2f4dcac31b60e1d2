"""The Kafka thread of a worker: it owns the consumer, and keeps polling whatever happens."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from farandole import kafka
from farandole.kafka import KafkaError, TopicPartition
from farandole.settings import Settings
from farandole.wake import unwrap
from farandole.worker.holdings import Held, Holdings, Item
from farandole.worker.known import Positions
from farandole.worker.ledger import SlotLost
from farandole.worker.membership import Membership

log = logging.getLogger("farandole.intake")

#: Seconds. Bounds how late a rebalance or a stop is noticed.
_POLL = 0.1

#: Seconds. Room usually comes back within this; pausing throws away what the client has fetched.
_PATIENCE = 0.2

#: Seconds. Leaving a group takes one answer of the broker.
_CLOSE = 12.0

#: Bytes of records that wait for the worker, whatever their number; shared out among the partitions.
_MAX_WAITING_BYTES = 32 * 1024 * 1024


class Intake:
    """Reads the agent's topics as a member of the group. `notify` is called, on the Kafka thread, when something came."""

    def __init__(
        self,
        settings: Settings,
        topics: Sequence[str],
        group: str,
        instance: str,
        holdings: Holdings,
        known: Positions,
        notify: Callable[[], object],
    ) -> None:
        self._settings = settings
        self._topics = list(topics)
        self._notify = notify
        self._consumer = kafka.consumer(settings, group, **{"group.instance.id": instance})
        self._holdings = holdings
        self._known = known
        self.membership = Membership(settings, group, instance, holdings, known, notify)
        self._room = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"kafka-{group}", daemon=True)

    def start(self) -> None:
        """Join the group and begin to read."""
        self._thread.start()

    def taken(self) -> None:
        """Records were taken: there may be room again."""
        self._room.set()

    def close(self) -> None:
        """Leave the group; what was not committed is read again by whoever comes next."""
        self.membership.closing.set()
        self._room.set()
        if not self._thread.is_alive():
            kafka.leave(self._consumer)
            return
        self._thread.join(_CLOSE)
        if self._thread.is_alive():  # a client that has lost its coordinator for good (librdkafka 5456, 5511)
            log.warning("the consumer does not close; it is left behind")

    def _run(self) -> None:
        member = self.membership
        try:
            self._join()
            while not member.closing.is_set():
                if member.rejoin.is_set():
                    member.rejoin.clear()
                    self._consumer.unsubscribe()  # to subscribe to the same again does nothing
                    self._poll()
                    self._join()
                came = self._poll()
                if member.look_at_group(self._consumer) or came:
                    self._notify()
                self._balance()
        except BaseException as failure:  # noqa: BLE001  whatever ended the thread must end the worker, with its reason
            member.failure = member.failure or failure
        finally:
            self._notify()
            kafka.leave(self._consumer)

    def _join(self) -> None:
        member = self.membership
        self._consumer.subscribe(
            self._topics, on_assign=member.on_assign, on_revoke=member.on_revoke, on_lost=member.on_lost
        )

    def _poll(self) -> bool:
        first = self._consumer.poll(_POLL)
        if first is None:
            return False
        messages = [first, *self._consumer.consume(self._settings.batch, 0)]
        with self._holdings.lock:  # an end must never be seen before the records that lie below it
            for message in messages:
                held = self._holdings.held.get((message.topic() or "", message.partition() or 0))
                error = message.error()
                if error:
                    self._on_error(error, held, message)
                elif held and not held.leaving:
                    self._holdings.arrive(self._item(message, held))
        return True

    def _item(self, message: kafka.Message[bytes, bytes], held: Held) -> Item:
        record = kafka.record_of(message)
        offset = record.offset
        if record.topic == self._topics[0]:
            return Item(record, held, offset)
        record, wake = unwrap(record, self._settings.topic)
        return Item(record, held, offset, wake)

    def _on_error(self, error: KafkaError, held: Held | None, message: kafka.Message[bytes, bytes]) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            if held:
                held.end = max(held.end, message.offset() or 0)  # past transaction markers
        elif code == KafkaError._AUTO_OFFSET_RESET:
            reason = f"the log no longer has offset {message.offset()} ({error.str()})"
            raise self._known.gap(message.topic() or "", message.partition() or 0, reason)
        elif error.fatal() or code == KafkaError._FATAL:  # mostly another consumer with this worker's instance name
            raise SlotLost(f"the consumer has failed for good: {error.str()}")
        else:
            log.warning("broker: %s", error.str())

    def _balance(self) -> None:
        """Pause the partitions whose records nobody can take yet, resume those that can be taken again."""
        if self._full():
            self._room.clear()
            if self._full():  # room may have come between the two looks
                self._room.wait(_PATIENCE)
            self._pause(self._full())
        with self._holdings.lock:
            ready = [held for held in self._holdings.held.values() if held.paused and self._has_room(held, 0.25)]
        if ready:
            self._consumer.resume(_places(ready))
            for held in ready:
                held.paused = False

    def _pause(self, full: list[Held]) -> None:
        if full:
            self._consumer.pause(_places(full))
            for held in full:
                held.paused = True

    def _full(self) -> list[Held]:
        with self._holdings.lock:
            return [one for one in self._holdings.held.values() if not one.paused and not self._has_room(one, 1.0)]

    def _has_room(self, held: Held, share: float) -> bool:
        """Each partition has a share of its own: one that stands still must not stop the others."""
        most = _MAX_WAITING_BYTES / max(1, len(self._holdings.held))
        return len(held.waiting) < share * 2 * self._settings.batch and held.waiting_bytes < share * most


def _places(held: list[Held]) -> list[TopicPartition]:
    return [TopicPartition(one.topic, one.partition) for one in held]
