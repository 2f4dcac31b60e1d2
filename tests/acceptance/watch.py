"""Watches a running namespace: whether stored positions or ended jobs ever go back, however shortly."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Self

import psycopg
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.acceptance.picture import Stage
from tests.kafka_log import KafkaLog

#: Postgres itself notes what goes back, so that no moment is missed.
_TRIGGERS = """
CREATE TABLE went_back (what text NOT NULL);
CREATE FUNCTION note_position() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO went_back SELECT format('%s [%s]: %s after %s', NEW.topic, NEW.partition, NEW.next_offset, OLD.next_offset);
  RETURN NULL; END $$;
CREATE TRIGGER position_goes_back AFTER UPDATE ON projector_offset FOR EACH ROW
  WHEN (OLD.next_offset IS NOT NULL AND (NEW.next_offset IS NULL OR NEW.next_offset < OLD.next_offset))
  EXECUTE FUNCTION note_position();
CREATE FUNCTION note_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO went_back SELECT format('job %s: %s after %s in run %s', NEW.trace_id, NEW.stage, OLD.stage, NEW.run);
  RETURN NULL; END $$;
CREATE TRIGGER job_goes_back AFTER UPDATE ON job FOR EACH ROW
  WHEN (OLD.outcome IS NOT NULL AND NEW.outcome IS NULL AND NEW.run = OLD.run)
  EXECUTE FUNCTION note_job();
"""


class Watch:
    """From the beginning of a block to its end; the tables must be there."""

    def __init__(self, log: KafkaLog, database: psycopg.Connection[Any], stages: tuple[Stage, ...]) -> None:
        self.looks = 0
        self._went_back: list[str] = []
        self._positions: dict[tuple[str, str, int], int] = {}
        self._log = log
        self._readers: dict[str, Consumer] = {}
        self._stages = stages
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        database.execute(_TRIGGERS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        for reader in self._readers.values():
            reader.close()

    def complaints(self, database: psycopg.Connection[Any]) -> list[str]:
        """What went back so far."""
        return [*self._went_back, *(row[0] for row in database.execute("SELECT what FROM went_back"))]

    def _look_on(self) -> None:
        while not self._stop.wait(0.1):
            for stage in self._stages:
                try:
                    self._look(stage)
                except KafkaException:  # an outage, or the group is only being made
                    self._readers.pop(stage.agent).close()  # an old one may not survive the broker's restart

    def _reader(self, agent: str) -> Consumer:
        """A consumer of the agent's group that does not join it. Pending transactions are not waited for."""
        if agent not in self._readers:
            config = {"bootstrap.servers": self._log.brokers, "group.id": self._log.topic(agent), "log_level": 0}
            self._readers[agent] = Consumer(
                config | {"isolation.level": "read_uncommitted", "enable.auto.commit": False}
            )
        return self._readers[agent]

    def _look(self, stage: Stage) -> None:
        reader, topic = self._reader(stage.agent), self._log.topic(stage.reads)
        known = reader.list_topics(topic, timeout=2).topics[topic].partitions
        for place in reader.committed([TopicPartition(topic, number) for number in known], timeout=2):
            self.note(stage.agent, place.topic, place.partition, place.offset)
        self.looks += 1

    def note(self, agent: str, topic: str, partition: int, offset: int) -> None:
        """One position as it was seen."""
        before = self._positions.get((agent, topic, partition), offset)
        if offset < before:
            self._went_back.append(f"{agent} in {topic} [{partition}]: {offset} after {before}")
        self._positions[agent, topic, partition] = offset
