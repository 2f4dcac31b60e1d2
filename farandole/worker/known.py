"""Whether a partition that is assigned still fits its committed offset: a new group is told from one that has lost it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from farandole import asking, kafka, postgres
from farandole.errors import Stopped, Unreachable
from farandole.gaps import Known, judge
from farandole.kafka import KafkaException, TopicPartition
from farandole.lag import Broker, Span
from farandole.outage import Outage
from farandole.settings import Settings
from farandole.threads import in_thread

log = logging.getLogger("farandole.known")

T = TypeVar("T")

#: Seconds between two looks at whether the topics are still the same ones; recreating one is rare.
EVERY = 15.0

#: Seconds for one question to the database, whatever the server does.
_WORK = 12.0

_SQL = {
    name: (Path(__file__).parent / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    for name in ("known", "know", "know_gap")
}


class Positions:
    """What the table `agent_offset` holds of an agent's partitions, beside the offsets in Kafka.

    `outage` is asked for one anew for each piece of work. Used on the Kafka thread, `watch` apart.
    """

    def __init__(self, settings: Settings, agent: str, outage: Callable[[], Outage]) -> None:
        self._settings = settings
        self._agent = agent
        self._outage = outage
        self._topic_ids: dict[str, str] = {}  #: by broker's name, of what is or was assigned

    def checked(
        self, consumer: kafka.Consumer, found: list[TopicPartition], again: bool = False
    ) -> list[TopicPartition]:
        """The partitions of an assignment with the offsets to start at, none negative. Call it in `on_assign`.

        `found` has the committed offsets. A partition that this group has never had starts at its beginning, and that
        offset is committed at once: from then on, no offset means a lost one. Raises Stopped, naming the gap, where the
        offset is lost, or belongs to a topic that was deleted and made again.
        """
        broker = Broker(self._settings)
        ids = self._patiently(lambda: broker.topic_ids({part.topic for part in found}))
        known = self._in_database(lambda connection: self._read(connection, found))
        reasons = {_place(part): judge(known.get(_place(part)), part.offset, ids.get(part.topic)) for part in found}
        gaps = {place: reason for place, reason in reasons.items() if reason}
        if gaps and not again:  # this worker may have stood still meanwhile, and another one have begun
            group = self._settings.group(self._agent)
            fresh = self._patiently(lambda: asking.committed(self._settings, group, [_place(part) for part in found]))
            return self.checked(consumer, list(fresh.values()), again=True)
        if gaps:
            raise self._stopped(gaps)
        lows = self._patiently(lambda: broker.ends(_place(part) for part in found if part.offset < 0))
        starts = [_start(part, known.get(_place(part)), lows.get(_place(part), Span(0, 0)).low) for part in found]
        moved = [start for start, part in zip(starts, found, strict=True) if start is not part]
        decided = any(kept.go_on_at is not None for kept in known.values())
        unsure = set() if self._commit(consumer, moved, decided) else {_place(part) for part in moved}
        self._in_database(lambda connection: self._write(connection, starts, ids, unsure))
        self._topic_ids |= ids
        return starts

    def gap(self, topic: str, partition: int, reason: str) -> Stopped:
        """Note that the log does not have what comes next; the error to raise. A gap that is known already stays: after an
        assignment that was refused the client reads on by itself, and finds nothing."""
        return self._stopped({(topic, partition): reason}, first=True)

    async def watch(self) -> None:
        """Look now and then whether the topics are still the same ones. Runs until cancelled; raises Stopped when one was
        deleted and made again, which offsets alone do not show where the new log has grown past the old position."""
        while True:
            await asyncio.sleep(EVERY)
            before = dict(self._topic_ids)
            now = await in_thread(partial(self._ids_now, set(before)), f"topics-{self._agent}")
            changed = [topic for topic, topic_id in now.items() if topic_id != before[topic]]
            if changed:
                topic = changed[0]
                raise Stopped(
                    f"gap: {topic} was deleted and made again (id {before[topic]}, now {now[topic]}); the offsets of agent "
                    f"{self._agent} were meant for the old one: start it again to see which"
                )

    def _commit(self, consumer: kafka.Consumer, moved: list[TopicPartition], decided: bool) -> bool:
        """Tell Kafka where the group starts. Whether it took that; a decision of a person must not be lost."""
        if not moved:
            return True
        try:
            for part in consumer.commit(offsets=moved, asynchronous=False) or ():
                if part.error:
                    raise KafkaException(part.error)
        except KafkaException as failure:
            if decided:
                raise
            log.info("first_offsets_left_out agent=%s: %s", self._agent, kafka.error_of(failure).str())
            return False
        return True

    def _read(self, connection: postgres.Connection[Any], found: list[TopicPartition]) -> dict[tuple[str, int], Known]:
        rows = connection.execute(_SQL["known"], self._columns(found))
        return {(self._settings.topic(row[0]), row[1]): Known(*row[2:]) for row in rows}

    def _write(
        self,
        connection: postgres.Connection[Any],
        starts: list[TopicPartition],
        ids: dict[str, str],
        unsure: set[tuple[str, int]],
    ) -> None:
        columns = self._columns(starts)
        columns["topic_ids"] = [ids.get(part.topic) for part in starts]
        columns["positions"] = [None if _place(part) in unsure else part.offset for part in starts]
        connection.execute(_SQL["know"], columns)

    def _columns(self, parts: list[TopicPartition]) -> dict[str, Any]:
        topics = [self._settings.bare(part.topic) for part in parts]
        return {"agent": self._agent, "topics": topics, "partitions": [part.partition for part in parts]}

    def _stopped(self, gaps: dict[tuple[str, int], str], first: bool = False) -> Stopped:
        """Keep the gaps for whoever looks; the error that names the first."""
        rows = [
            {
                "agent": self._agent,
                "topic": self._settings.bare(topic),
                "partition": partition,
                "gap": reason,
                "first": first,
            }
            for (topic, partition), reason in sorted(gaps.items())
        ]
        self._in_database(lambda connection: connection.cursor().executemany(_SQL["know_gap"], rows))
        (topic, partition), reason = min(gaps.items())
        others = f" (and {len(gaps) - 1} more)" if len(gaps) > 1 else ""
        return Stopped(
            f"gap: {topic} [{partition}]{others}: {reason}; say where to go on: "
            f"`farandole gaps accept {self._agent} --at earliest|latest|OFFSET`"
        )

    def _in_database(self, work: Callable[[postgres.Connection[Any]], T]) -> T:
        """On a connection of its own: assignments are rare, and the worker's connection belongs to another thread."""

        def call() -> T:
            with (
                postgres.connect(self._settings, application=f"farandole {self._agent} offsets") as connection,
                postgres.bounded(connection, _WORK),
            ):
                return work(connection)

        return self._patiently(call)

    def _patiently(self, call: Callable[[], T]) -> T:
        return self._outage().through(call, lambda failure: postgres.is_outage(failure) or kafka.is_outage(failure))

    def _ids_now(self, topics: set[str]) -> dict[str, str]:
        """Nothing where the broker does not say: it is asked again later."""
        try:
            return Broker(self._settings).topic_ids(topics)
        except Unreachable as failure:
            log.info("topic_ids_unknown agent=%s: %s", self._agent, failure)
            return {}


def _start(part: TopicPartition, known: Known | None, low: int) -> TopicPartition:
    """Where to read on: the very `part`, or another place, with no metadata of what was finished beyond it."""
    if known and known.go_on_at is not None:
        log.warning("going_on topic=%s partition=%d offset=%d, as decided", part.topic, part.partition, known.go_on_at)
        return TopicPartition(part.topic, part.partition, known.go_on_at)
    return part if part.offset >= 0 else TopicPartition(part.topic, part.partition, low)


def _place(part: TopicPartition) -> tuple[str, int]:
    return part.topic, part.partition
