"""The partitions a projector holds: claimed in the database, and read from where the database says."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from farandole import asking, kafka
from farandole.errors import Unreachable
from farandole.kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, Consumer, KafkaException, TopicPartition
from farandole.postgres import psycopg
from farandole.projector.store import Claim, Place, Store
from farandole.settings import Settings

log = logging.getLogger("farandole.projector")


class Partitions:
    """What Kafka assigned to us (`assigned`), and of that what the database granted (`epochs`).

    Used on the consuming thread only: Kafka's callbacks run inside `poll` and `consume`.
    """

    def __init__(self, settings: Settings, consumer: Consumer, store: Store) -> None:
        self._settings = settings
        self._consumer = consumer
        self.store = store
        self.epochs: dict[Place, int] = {}
        self.positions: dict[Place, int] = {}  #: what the database holds as next offset; -1: nothing was folded yet
        self.assigned: set[Place] = set()
        self._stopped: set[Place] = set()  #: at a gap
        self._topic_ids: dict[Place, str | None] = {}  #: as the database holds them; None: nobody has told it yet
        self.failure: Exception | None = None  #: what went wrong inside a callback; the binding would swallow it

    def subscribe(self) -> None:
        """Take part in the group: every topic of the flow, also those that are made later."""
        self._consumer.subscribe(
            [pattern(self._settings)], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def unclaimed(self) -> set[Place]:
        """Assigned by Kafka, not (or no longer) ours in the database, and not stopped by a gap."""
        return self.assigned - self.epochs.keys() - self._stopped

    def reclaim(self, places: Iterable[Place]) -> None:
        """Claim partitions that are assigned already, and read them again from where the database says."""
        for part in self._claimed(self.assigned.intersection(places)):
            if part.offset == OFFSET_END:
                continue  # a gap: it stays paused
            self._consumer.incremental_unassign([part])
            self._consumer.incremental_assign([part])
            self._consumer.resume([part])

    def pause(self) -> None:
        """Stop fetching; what was fetched and not written is read again after `reclaim`."""
        self.epochs.clear()
        self._consumer.pause([self._part(place) for place in self.assigned])

    def lose(self, places: Iterable[Place]) -> None:
        """The database refused: somebody else claimed these."""
        for place in places:
            log.warning("partition_refused topic=%s partition=%s: another projector claimed it", *place)
            self.epochs.pop(place, None)

    def stop_at_gap(self, place: Place, reason: str) -> None:
        """Name the gap in the database and the log, and leave the partition where it is; the others go on."""
        log.error(
            "gap topic=%s partition=%s: %s; it stands still until a person says where to go on:"
            " `farandole projector skip-gap %s %s --at earliest|latest|OFFSET`",
            *place,
            reason,
            *place,
        )
        self._stopped.add(place)
        epoch = self.epochs.pop(place, None)
        if epoch is not None:
            self.store.set_gap(place, epoch, reason)
        if place in self.assigned:
            self._consumer.pause([self._part(place)])

    def check_topics(self) -> None:
        """Stop at topics that were deleted and made again, which offsets alone do not show; try stopped ones again."""
        self._stopped.clear()
        topics = {topic for topic, _ in self.epochs}
        found = self._ask_topic_ids(topics)
        for place in list(self.epochs):
            self._check_topic(place, found.get(place[0]))

    def _check_topic(self, place: Place, now: str | None) -> None:
        """Hold the topic's id against the one that is known, or keep it where none is."""
        known = self._topic_ids.get(place)
        if now and known is None:
            self.store.set_topic_id(place, now)
            self._topic_ids[place] = now
        elif now and known != now:
            self.stop_at_gap(place, f"the topic was deleted and made again (id {known}, now {now})")

    def release(self) -> None:
        """Give everything back, at the end."""
        self.store.release(self.epochs)
        self.epochs.clear()

    def _on_assign(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        places = {self._place(part) for part in parts}
        self.assigned |= places
        try:
            claimed = self._claimed(places)
        except Exception as failure:  # noqa: BLE001  raised here, the binding would assign without our offsets
            self.failure = failure
            claimed = [self._part(place, OFFSET_END) for place in places]
        consumer.incremental_assign(claimed)
        held = [part for part in claimed if part.offset == OFFSET_END]
        if held:
            consumer.pause(held)
        going = [part for part in claimed if part.offset != OFFSET_END]
        if going:
            consumer.resume(going)  # a pause outlives its assignment

    def _on_revoke(self, _consumer: Consumer, parts: list[TopicPartition]) -> None:
        mine = self._forget(parts)
        try:
            self.store.release(mine)
        except (psycopg.Error, Unreachable) as failure:
            log.info("release_skipped: %s", failure)  # the next owner's claim does not need it

    def _on_lost(self, _consumer: Consumer, parts: list[TopicPartition]) -> None:
        self._forget(parts)

    def _forget(self, parts: Iterable[TopicPartition]) -> dict[Place, int]:
        places = {self._place(part) for part in parts}
        self.assigned -= places
        self._stopped -= places
        return {place: self.epochs.pop(place) for place in places if place in self.epochs}

    def _claimed(self, places: set[Place]) -> list[TopicPartition]:
        """Claim, and say where to read: OFFSET_END stands for a partition that must not be read."""
        if not places:
            return []
        found = self._ask_topic_ids({topic for topic, _ in places})
        parts = []
        for place, claim in self.store.claim(places).items():
            self.epochs[place] = claim.epoch
            self.positions[place] = -1 if claim.next_offset is None else claim.next_offset
            self._topic_ids[place] = claim.topic_id
            parts.append(self._part(place, self._start(place, claim, found.get(place[0]))))
        return parts

    def _start(self, place: Place, claim: Claim, topic_id: str | None) -> int:
        if claim.gap:
            log.error("gap topic=%s partition=%s: %s", *place, claim.gap)
            del self.epochs[place]
            self._stopped.add(place)
        else:
            self._check_topic(place, topic_id)
        if place not in self.epochs:
            return OFFSET_END
        return OFFSET_BEGINNING if claim.next_offset is None else claim.next_offset

    def _ask_topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The ids by bare name; nothing where the broker does not say, which is checked again later."""
        asked = sorted(topics)
        try:
            found = asking.topic_ids(self._settings, [self._settings.topic(topic) for topic in asked])
        except (KafkaException, Unreachable) as failure:
            if len(asked) > 1 and not kafka.is_outage(failure):  # one that was deleted must not hide the others
                return {topic: one for topic in asked for one in self._ask_topic_ids([topic]).values()}
            log.info("topic_ids_unknown topics=%s: %s", ",".join(asked), failure)
            return {}
        return {self._settings.bare(topic): topic_id for topic, topic_id in found.items()}

    def _place(self, part: TopicPartition) -> Place:
        return self._settings.bare(part.topic), part.partition

    def _part(self, place: Place, offset: int = OFFSET_INVALID) -> TopicPartition:
        return TopicPartition(self._settings.topic(place[0]), place[1], offset)


def pattern(settings: Settings) -> str:
    """The topics that are folded: all event topics of the flow, in this namespace only."""
    return f"^{re.escape(settings.topic(settings.flow))}\\..*"
