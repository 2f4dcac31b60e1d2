"""The projector's loop: take records, fold them in one transaction, go on; an outage only pauses it."""

from __future__ import annotations

import logging
import os
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from farandole import kafka
from farandole.contracts.lookup import Schemas
from farandole.errors import Stopped
from farandole.kafka import KafkaError, KafkaException, Message, Record, TopicPartition
from farandole.postgres import OUTAGES
from farandole.projector import outages
from farandole.projector.folds import NotLive
from farandole.projector.outsider import Outsider
from farandole.projector.partitions import Partitions
from farandole.projector.rows import Rows
from farandole.projector.store import Folded, Place, Store
from farandole.settings import Settings

log = logging.getLogger("farandole.projector")

#: Batches in one transaction where so many records wait: each commit costs a write to disk.
CATCH_UP = 4
#: Seconds. How long an idle projector waits for a record; also how soon it notices that it should stop.
POLL = 0.2
#: Seconds between two looks at things that rarely change: recreated topics, partitions refused to us.
CHECK, RECLAIM = 15.0, 1.0
#: Seconds. The copy of the offsets in Kafka is for lag tools; oftener would only cost.
COPY_OFFSETS = 1.0
#: Seconds. A batch that takes the database longer than this may take for ever: a lock, a frozen server.
SLOW = 5.0
#: Seconds between two tries in an outage, at first and at most.
BACKOFF, BACKOFF_MAX = 0.2, 5.0


class Stop(Protocol):
    """A threading.Event, or anything that can be asked the same."""

    def is_set(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Writing:
    """A batch on its way into the database, and the positions that are stored with it."""

    reached: dict[Place, int]
    outcome: Future[Folded]


class Projector:
    """One consumer and one connection: the next batch is decoded while the database writes the one before."""

    def __init__(self, settings: Settings, stop: Stop) -> None:
        self._settings = settings
        self._stop = stop
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{time.time_ns():x}"
        self._bare = cache(settings.bare)
        self._rows = Rows(Schemas(settings), settings)
        self._consumer = kafka.consumer(settings, settings.group("projector"))
        self._partitions = Partitions(settings, self._consumer, Store(settings, self._owner))
        self._outsider = Outsider(settings)
        self._writer = ThreadPoolExecutor(1, "projector-writer")
        self._writing: _Writing | None = None
        self._copied: dict[Place, int] = {}  #: written, and not yet told to Kafka
        self._next_check = self._next_reclaim = self._next_copy = 0.0

    def run(self) -> None:
        """Take, fold, go on, until asked to stop. A crash anywhere repeats work; it never loses or doubles it."""
        try:
            self._partitions.subscribe()
            while not self._stop.is_set():
                try:
                    records, ends = self._take()
                    self._callbacks_went_well()
                    self._fold(records, ends)
                    self._look_around()
                except (*OUTAGES, NotLive, KafkaException) as failure:
                    self._wait_out(failure)
            self._leave()
        finally:
            self._writer.shutdown()
            kafka.leave(self._consumer)
            self._partitions.store.close()

    def _take(self) -> tuple[list[Record], dict[Place, int]]:
        """What is there, up to a few batches, and the ends that were reached; waits a little for the first record.

        An end lies past the transaction markers that follow the last record. It counts only together with the records
        before it: where those are dropped, it is dropped too.
        """
        first = self._consumer.poll(0 if self._writing else POLL)
        messages = [] if first is None else [first, *self._consumer.consume(CATCH_UP * self._settings.batch - 1, 0)]
        records, ends = [], {}
        for message in messages:
            error = message.error()
            if error is None:
                records.append(kafka.record_of(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                ends[self._place(message)] = message.offset() or 0
            else:
                self._complain(error, message)
        return records, ends

    def _complain(self, error: KafkaError, message: Message[Any, Any]) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            reason = f"offset {message.offset()} is out of the log's range: {error.str()}"
            self._partitions.stop_at_gap(self._place(message), reason)
        elif error.fatal():
            raise Stopped(f"Kafka: {error.str()}")
        else:
            log.warning("kafka topic=%s partition=%s: %s", message.topic(), message.partition(), error.str())

    def _place(self, message: Message[Any, Any]) -> Place:
        return self._bare(message.topic() or ""), message.partition() or 0

    def _fold(self, records: list[Record], ends: dict[Place, int]) -> None:
        """Hand a batch to the database once it has settled the one before."""
        epochs, bare, mine = self._partitions.epochs, self._bare, []
        reached: dict[Place, int] = {}
        for record in records:
            place = bare(record.topic), record.partition
            if place in epochs:
                mine.append(record)
                reached[place] = record.offset + 1
        batch = self._rows.batch(mine)
        self._settle()
        for place, end in ends.items():
            reached[place] = max(end, reached.get(place, 0))
        reached = {
            place: offset
            for place, offset in reached.items()
            if place in epochs and offset > self._partitions.positions[place]
        }
        if reached:
            folded = self._writer.submit(self._partitions.store.fold, batch, reached, dict(epochs))
            self._writing = _Writing(reached, folded)

    def _settle(self) -> None:
        """Wait for the batch that is being written; its outcome, or what went wrong, is known after this."""
        writing = self._writing
        if writing is None:
            return
        self._await(writing)
        self._writing = None
        folded = writing.outcome.result()
        log.debug("folded new=%s duplicates=%s parked=%s", folded.new, folded.duplicates, folded.parked)
        self._partitions.lose(folded.refused)
        done = {place: offset for place, offset in writing.reached.items() if place not in folded.refused}
        self._partitions.positions |= done
        self._copied |= done

    def _await(self, writing: _Writing) -> None:
        """Wait until the database is through with a batch; where that takes long, stay a member of the group.

        What comes meanwhile is dropped, and so are the claims: `reclaim` reads again from where the database says.
        """
        if wait([writing.outcome], SLOW).done:
            return
        log.warning("slow_database: a batch has taken more than %.0f s; waiting for it, paused", SLOW)
        self._partitions.pause()
        while not wait([writing.outcome], POLL).done:
            self._stay()
        self._partitions.pause()  # also what was claimed and dropped since

    def _look_around(self) -> None:
        """What is due now and then, each at its own pace."""
        self._outsider.look(self._consumer.memberid())
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + CHECK
            self._partitions.check_topics()
        if now >= self._next_reclaim:
            self._next_reclaim = now + RECLAIM
            self._partitions.reclaim(self._partitions.unclaimed())
        if now >= self._next_copy:
            self._next_copy = now + COPY_OFFSETS
            self._copy_offsets()

    def _leave(self) -> None:
        """Finish the batch in hand and give the partitions back; in an outage the next claim does without."""
        try:
            self._settle()
            self._partitions.release()
        except (*OUTAGES, NotLive, KafkaException) as failure:
            log.warning("left_without_release: %s", failure)
        self._copy_offsets(last=True)

    def _callbacks_went_well(self) -> None:
        failure, self._partitions.failure = self._partitions.failure, None
        if failure:
            raise failure

    def _wait_out(self, failure: Exception) -> None:
        """Keep polling, paused, until what is away is back; then go on from where it says."""
        began, backoff = time.monotonic(), BACKOFF
        if self._writing:
            self._await(self._writing)  # it may be at work yet, on the connection that is closed below
            self._writing = None  # written or not: the stored positions tell
        while not self._stop.is_set():
            outages.only(failure)
            log.warning("waiting seconds=%.1f: %s", backoff, failure)
            outages.bound(failure, time.monotonic() - began, self._settings.outage_seconds)
            self._partitions.pause()
            self._poll_for(backoff)
            backoff = min(backoff * 2, BACKOFF_MAX)
            try:
                self._reconnect()
            except (*OUTAGES, KafkaException) as again:
                failure = again
            else:
                return

    def _poll_for(self, seconds: float) -> None:
        """Stay a member of the group. What still comes is dropped: it is read again after the claim."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._stop.is_set():
            self._stay(min(POLL, seconds))

    def _stay(self, seconds: float = 0) -> None:
        """Answer the group; what is wrong with Kafka shows again in the next ordinary poll."""
        with suppress(KafkaException):
            self._consumer.poll(seconds)

    def _reconnect(self) -> None:
        self._partitions.store.close()
        self._partitions.store = Store(self._settings, self._owner)
        self._partitions.failure = None
        self._partitions.reclaim(self._partitions.assigned)

    def _copy_offsets(self, last: bool = False) -> None:
        """Tell Kafka where we are; only lag tools read it, so nothing depends on it."""
        if not self._copied:
            return
        parts = [TopicPartition(self._settings.topic(name), part, to) for (name, part), to in self._copied.items()]
        self._copied.clear()
        try:
            if last:
                kafka.bounded(lambda: self._consumer.commit(offsets=parts, asynchronous=False))
            else:
                self._consumer.commit(offsets=parts, asynchronous=True)
        except (KafkaException, TimeoutError) as failure:
            log.debug("offsets_not_copied: %s", failure)
