"""Which partitions a worker holds, from one assignment until it is taken away, and the group metadata to commit under.

Whatever touches the consumer runs on the Kafka thread: the client library lets one thread at a time into a consumer, and
poll() is nearly always in it. The others look at `Holdings`, and tell `refresh`.
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Callable

from farandole import asking, kafka
from farandole.errors import Unreachable
from farandole.kafka import KafkaException, TopicPartition
from farandole.settings import Settings
from farandole.worker import takeover
from farandole.worker.holdings import Holdings
from farandole.worker.known import Positions
from farandole.worker.positions import Note, Unreadable, decode

log = logging.getLogger("farandole.membership")

#: Seconds. A refused commit waits this long for the Kafka thread to look at the group again, then is planned anew anyway.
_REFRESH = 2.0

#: Seconds. A commit that stays undecided for longer was left so by a worker that died, or stands still.
_UNDECIDED = 1.0


class Membership:
    """The consumer's rebalance callbacks and what they know; `changed` is called when partitions have come or gone."""

    def __init__(
        self,
        settings: Settings,
        group: str,
        owner: str,
        holdings: Holdings,
        known: Positions,
        changed: Callable[[], object],
    ) -> None:
        self._group = group
        self._owner = owner
        self._holdings = holdings
        self._known = known
        self._changed = changed
        self._settings = settings
        self.failure: BaseException | None = None
        self.closing = threading.Event()
        self.rejoin = threading.Event()  #: the Kafka thread is to leave the group and join it again
        self._stale = True
        self._refreshed = threading.Event()

    def refresh(self) -> None:
        """Have the Kafka thread look at the group again, after it refused a commit. Waits, bounded."""
        self._refreshed.clear()
        self._stale = True
        self._refreshed.wait(_REFRESH)

    def look_at_group(self, consumer: kafka.Consumer) -> bool:
        """Take the group metadata after a rebalance, or when asked. True when it was taken."""
        if not self._stale or not self._holdings.held:
            return False
        metadata = consumer.consumer_group_metadata()
        if _generation(metadata) < 0:
            return False  # not a member yet; the broker would take offsets under such metadata for any live group
        with self._holdings.lock:
            self._holdings.metadata, self._stale = metadata, False
        self._refreshed.set()
        return True

    def on_assign(self, consumer: kafka.Consumer, places: list[TopicPartition]) -> None:
        """Start new partitions at their committed offsets. Called, without partitions, on every rebalance."""
        self._stale = True
        try:
            if places:
                starts = self._known.checked(consumer, self._positions(consumer, places))
                consumer.incremental_assign([self._hold(place) for place in starts])
                log.info("assigned %s", _names(places))
            held = list(self._holdings.held.values())
            consumer.resume(
                [TopicPartition(one.topic, one.partition) for one in held]
            )  # a pause outlives revoke and assign
            for one in held:
                one.paused = False
            self._changed()
        except BaseException as failure:  # noqa: BLE001  the client would swallow it and start without positions
            self.failure = self.failure or failure
            self.closing.set()

    def _hold(self, place: TopicPartition) -> TopicPartition:
        """Hold a partition from its committed place on; where its reading begins."""
        note = read_note(place)
        beyond = note.beyond if note else ()
        self._holdings.hold(place.topic, place.partition, place.offset, beyond)
        if beyond:
            count = sum(end - first for first, end in beyond)
            log.info(
                "skipping %s [%d]: %d offsets beyond %d are finished", place.topic, place.partition, count, place.offset
            )
        return TopicPartition(place.topic, place.partition, place.offset)

    def on_revoke(self, _consumer: kafka.Consumer, places: list[TopicPartition]) -> None:
        """Let what is nearly done end and be committed (the group waits for this member), then drop what goes."""
        keys = _keys(places)
        if not self.closing.is_set():
            with self._holdings.lock:
                for key in keys:
                    if key in self._holdings.held:
                        self._holdings.held[key].leaving = True
            self._changed()  # what waits for its turn must not begin
            self._holdings.leave(keys, self._settings.session_timeout_ms / 4000)
        self._drop(places, "released")

    def on_lost(self, _consumer: kafka.Consumer, places: list[TopicPartition]) -> None:
        """The group has gone on without this member: nothing of these partitions may be committed any more."""
        self._drop(places, "lost")

    def _positions(self, consumer: kafka.Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
        """The committed offsets; waits for the transaction of whoever held these partitions before.

        Asked in turn of this consumer and of a client made for the question: after the broker was away a client may not
        find its coordinator again.
        """
        began, settled = time.monotonic(), False
        while not self.closing.is_set():
            for outside in (False, True):
                try:
                    return self._ask(consumer, places, outside)
                except KafkaException as failure:
                    passing = kafka.is_outage(failure) or kafka.error_of(failure).retriable()
                    if not passing or time.monotonic() - began > self._settings.outage_seconds:
                        raise
                    log.info("waiting for the positions of %s: %s", _names(places), kafka.error_of(failure).str())
            if not settled:
                settled = takeover.settle(self._settings, self._group, _keys(places), self._owner)
        raise Unreachable("stopped while waiting for committed offsets")

    def _ask(self, consumer: kafka.Consumer, places: list[TopicPartition], outside: bool) -> list[TopicPartition]:
        if outside:
            return list(asking.committed(self._settings, self._group, _keys(places)).values())
        return _without_errors(consumer.committed(places, timeout=_UNDECIDED))

    def _drop(self, places: list[TopicPartition], word: str) -> None:
        self._stale = True
        self._holdings.drop(_keys(places))
        self._changed()
        log.info("%s %s", word, _names(places))


def read_note(place: TopicPartition) -> Note | None:
    """What was committed beside a position; None, with a warning, when somebody else wrote it."""
    if not place.metadata or place.offset < 0:
        return None
    try:
        return decode(place.metadata, place.offset)
    except Unreadable as reason:
        log.warning("ignored the metadata of %s [%d]: %s", place.topic, place.partition, reason)
        return None


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
