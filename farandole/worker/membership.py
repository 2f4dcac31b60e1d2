"""Which partitions a worker holds, from one assignment until it is taken away, and the group metadata to commit under.

Whatever touches the consumer runs on the Kafka thread: the client library lets one thread at a time into a consumer, and
poll() is nearly always in it. The others ask `plan`, `joined` and `held`, and tell `refresh`.
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from farandole import kafka
from farandole.errors import Unreachable
from farandole.kafka import KafkaException, TopicPartition
from farandole.settings import Settings
from farandole.worker.batch import Batch, Held, Plan

log = logging.getLogger("farandole.membership")

#: Seconds. A refused commit waits this long for the Kafka thread to look at the group again, then is planned anew anyway.
_REFRESH = 2.0


class Membership:
    """The consumer's rebalance callbacks and what they know. `lock` guards `Held.lost` and the metadata.

    `leave` is called with partitions that are about to be released, while a commit for them is still possible.
    """

    def __init__(
        self, settings: Settings, group: str, lock: threading.RLock, leave: Callable[[set[Held]], None]
    ) -> None:
        self._group = group
        self.held: dict[tuple[str, int], Held] = {}
        self.failure: BaseException | None = None
        self.closing = threading.Event()
        self._settings = settings
        self._lock = lock
        self._leave = leave
        self._metadata: Any = None
        self._stale = True
        self._refreshed = threading.Event()

    @property
    def joined(self) -> bool:
        """Whether there is metadata to commit under."""
        return self._metadata is not None

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
        self._refreshed.wait(_REFRESH)

    def look_at_group(self, consumer: kafka.Consumer) -> None:
        """Take the group metadata after a rebalance, or when asked."""
        if not self._stale or not self.held:
            return
        metadata = consumer.consumer_group_metadata()
        if _generation(metadata) < 0:
            return  # not a member yet; the broker would take offsets under such metadata for any live group
        with self._lock:
            self._metadata, self._stale = metadata, False
        self._refreshed.set()

    def on_assign(self, consumer: kafka.Consumer, places: list[TopicPartition]) -> None:
        """Start new partitions at their committed offsets. Called, without partitions, on every rebalance."""
        self._stale = True
        try:
            if places:
                found = self._positions(consumer, places)
                self._hold(found)
                consumer.incremental_assign(found)
                log.info("assigned %s", _names(places))
            consumer.resume([TopicPartition(*key) for key in self.held])  # a pause outlives revoke and assign
        except BaseException as failure:  # noqa: BLE001  the client would swallow it and start without positions
            self.failure = failure
            self.closing.set()

    def _hold(self, found: list[TopicPartition]) -> None:
        with self._lock:  # the event loop looks at what is held, too
            for place in found:
                key = (place.topic, place.partition)
                self.held[key] = Held(*key, place.offset, place.offset)
                if place.offset < 0:
                    place.offset = kafka.OFFSET_BEGINNING  # a group that never committed starts at the beginning

    def on_revoke(self, _consumer: kafka.Consumer, places: list[TopicPartition]) -> None:
        """Let the commit in flight end (the group waits for this member), then drop what is no longer held."""
        leaving = {self.held[key] for key in _keys(places) if key in self.held}
        if not self.closing.is_set():
            self._leave(leaving)
        self._drop(places, "released")

    def on_lost(self, _consumer: kafka.Consumer, places: list[TopicPartition]) -> None:
        """The group has gone on without this member: nothing of these partitions may be committed any more."""
        self._drop(places, "lost")

    def _positions(self, consumer: kafka.Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
        """The committed offsets; waits for the transaction of whoever held these partitions before.

        Asked in turn of this consumer and of a client made for the question: after the broker was away a client may not
        find its coordinator again.
        """
        deadline = time.monotonic() + self._settings.outage_seconds
        while not self.closing.is_set():
            try:
                return _without_errors(consumer.committed(places, timeout=2.0))
            except KafkaException as failure:
                self._may_pass(failure, places, deadline)
            try:
                found = kafka.committed(self._settings, self._group, _keys(places))
                return [TopicPartition(*key, offset) for key, offset in found.items()]
            except KafkaException as failure:
                self._may_pass(failure, places, deadline)
        raise Unreachable("stopped while waiting for committed offsets")

    def _may_pass(self, failure: KafkaException, places: list[TopicPartition], deadline: float) -> None:
        passing = kafka.is_outage(failure) or kafka.error_of(failure).retriable()
        if not passing or time.monotonic() > deadline:
            raise failure
        log.info("waiting for the positions of %s: %s", _names(places), kafka.error_of(failure).str())

    def _drop(self, places: list[TopicPartition], word: str) -> None:
        self._stale = True
        with self._lock:
            for key in _keys(places):
                held = self.held.pop(key, None)
                if held:
                    held.lost = True
        log.info("%s %s", word, _names(places))


def _without_errors(found: list[TopicPartition]) -> list[TopicPartition]:
    for place in found:
        if place.error:  # unknown, not "never committed": reading from the beginning would be wrong
            raise KafkaException(place.error)
    return found


def _keys(places: list[TopicPartition]) -> list[tuple[str, int]]:
    return [(place.topic, place.partition) for place in places]


def _names(places: list[TopicPartition]) -> str:
    return ", ".join(f"{place.topic} [{place.partition}]" for place in places) or "nothing"


def _generation(metadata: object) -> int:
    """The generation inside the client's opaque metadata ("CGMDv2:", then an int32): a consumer that has not joined has
    -1, which the broker accepts for any live group."""
    return int(struct.unpack("=i", bytes(metadata)[7:11])[0])  # type: ignore[call-overload]
