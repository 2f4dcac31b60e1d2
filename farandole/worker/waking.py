"""Wakes on their way to Kafka: sent by a plain idempotent producer, each with where it came to lie, or why it did not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from farandole import kafka
from farandole.envelope import Coordinates
from farandole.kafka import Headers, KafkaError, KafkaException
from farandole.settings import Settings
from farandole.wake import Wake

#: Seconds. A wake that is not delivered within this is sent anew by the next sweep, through a new producer.
_DELIVERY = 8.0

#: The broker's no to a record for its own sake; another error is one of the broker, or of the whole topic.
_REFUSALS = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_MSG}


@dataclass(frozen=True, slots=True)
class Due:
    """A row of `wait` whose time has come."""

    event_id: str
    run: int
    seq: int
    origin: Coordinates
    key: bytes | None
    value: bytes
    headers: Headers  #: as the record had them
    attempts: int
    error: str

    @property
    def wake(self) -> Wake:
        return Wake(self.origin, self.seq, self.run, self.attempts, self.error)


@dataclass(slots=True)
class Sent:
    """What became of some wakes; one that is in neither list is to be sent again."""

    delivered: list[tuple[Due, int, int]] = field(default_factory=list)  #: with partition and offset
    refused: list[tuple[Due, KafkaError]] = field(default_factory=list)
    failure: KafkaError | None = None  #: why others were not delivered


class Waking:
    """Blocking; one thread at a time. `leaving` tells that nobody waits for the result any more."""

    def __init__(self, settings: Settings, topic: str, leaving: Callable[[], bool]) -> None:
        self._settings = settings
        self._topic = settings.topic(topic)
        self._leaving = leaving
        self._producer: kafka.Producer | None = None

    def send(self, due: Sequence[Due]) -> Sent:
        """Send them, and wait for every report, bounded. Nothing is raised for what the broker does."""
        sent = self._send(due)
        if sent.refused and len(due) > 1:  # a record that is too large drags those beside it along
            suspects, sent.refused = sent.refused, []
            for one, _ in suspects:
                alone = self._send([one])
                sent.delivered += alone.delivered
                sent.refused += alone.refused
                sent.failure = sent.failure or alone.failure
        return sent

    def close(self) -> None:
        """Give the producer up, with what it has not delivered."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def _send(self, due: Sequence[Due]) -> Sent:
        reports: dict[int, Any] = {}
        producer = self._ready()
        for place, one in enumerate(due):
            try:
                producer.produce(
                    self._topic,
                    value=one.value,
                    key=one.key,
                    headers=[*one.headers, *one.wake.headers()],
                    on_delivery=partial(_note, reports, place),
                )
            except KafkaException as refusal:  # too large for the client already
                reports[place] = kafka.error_of(refusal)
        deadline = time.monotonic() + _DELIVERY + 1.0
        while producer.flush(0.1) and time.monotonic() < deadline and not self._leaving():
            pass
        sent = Sent()
        for place, one in enumerate(due):
            report = reports.get(place)
            if isinstance(report, KafkaError):
                if report.code() in _REFUSALS:
                    sent.refused.append((one, report))
                else:
                    sent.failure = report
            elif report is None:
                sent.failure = sent.failure or KafkaError(KafkaError._MSG_TIMED_OUT, "no report of its delivery")
            elif report[1] >= 0:  # a repeated send that the broker had already has no offset: it is sent once more
                sent.delivered.append((one, *report))
        if sent.failure or sent.refused:
            self.close()  # after an outage a producer may never find its broker again
        return sent

    def _ready(self) -> kafka.Producer:
        if self._producer is None:
            self._producer = kafka.producer(self._settings, None, **{"delivery.timeout.ms": int(_DELIVERY * 1000)})
        return self._producer


def _note(reports: dict[int, Any], place: int, error: KafkaError | None, message: kafka.Message[Any, Any]) -> None:
    reports[place] = error or (message.partition(), message.offset())
