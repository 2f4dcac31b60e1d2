"""What an outcome puts on the log: events with their lineage, or a dead letter with the raw record and its causes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from farandole import envelope
from farandole.agent import Wiring
from farandole.contracts.codec import Contract
from farandole.contracts.framing import SCHEMA_HEADER
from farandole.dead_letter import PREFIX as DEAD
from farandole.dead_letter import DeadLetter, clean, size
from farandole.envelope import follow, key_of, traceparent
from farandole.event import Event, JobDeadLettered, JobFailed
from farandole.kafka import MAX_DEAD_LETTER_BYTES, Headers
from farandole.outcome import DeadLettered, Emitted, Failed, Skipped, Suspended
from farandole.records import coordinates
from farandole.settings import Settings
from farandole.worker import trail
from farandole.worker.holdings import Item

#: Bytes. Kafka's default limit for a topic's batch of records; a record above it aborts the transaction of all others.
MAX_RECORD_BYTES = 1_048_588

#: Bytes of a limit that are left free: frames are counted roughly.
_SPARE = 1024


@dataclass(frozen=True, slots=True)
class Output:
    """One record to produce; `topic` is the broker's name."""

    topic: str
    key: str | bytes | None
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        """Bytes on the log, about."""
        return size(self.key, self.value, self.headers)


class TooLarge(Exception):
    """An output is larger than its topic takes. Sizes are in bytes, with headers and frames."""

    def __init__(self, name: str, size: int, limit: int) -> None:
        super().__init__(f"{name} has {size:,} bytes; a record of its topic may have {limit:,}")
        self.name = name  #: full Avro name
        self.size = size
        self.limit = limit


#: Headers that tell of the very record that carries them: not passed on.
_OWN = ("traceparent", SCHEMA_HEADER)


class Outputs:
    """Builds the records of an agent's outcomes."""

    def __init__(self, settings: Settings, wiring: Wiring) -> None:
        self._settings = settings
        self._wiring = wiring
        self._agent = wiring.agent
        self.topics = [
            settings.topic(topic) for topic in wiring.writes
        ]  #: all it may write to, as the broker calls them

    def of(self, item: Item) -> list[Output]:
        """The records that `item`'s outcome puts on the log. What cannot be written becomes a dead letter."""
        outcome = item.outcome
        if not isinstance(outcome, Emitted | Failed):
            return self._of(item)
        try:
            return self._of(item)
        except TooLarge as error:
            item.outcome = DeadLettered("too_large", str(error), outcome.attempts)
        except Exception as error:  # noqa: BLE001  a user's event may fail to encode in any way
            item.outcome = DeadLettered("wrong_output", f"{type(error).__name__}: {error}", outcome.attempts)
        return self._of(item)

    def _of(self, item: Item) -> list[Output]:
        match item.outcome:
            case Emitted(events, attempts):
                return [self._event(item, event, position, attempts) for position, event in enumerate(events)]
            case Failed(reason, detail, attempts):
                return [self._failed(item, reason, detail, attempts)]
            case DeadLettered() as dead:
                return self._dead(item, dead)
            case Skipped() | Suspended() | None:
                return []

    def _event(self, item: Item, event: Event, position: int, attempt: int) -> Output:
        contract = self._wiring.emits[type(event)]
        return self._record(item, event, contract, self._lineage(item, contract, position, attempt))

    def _lineage(self, item: Item, contract: Contract, position: int, attempt: int) -> dict[str, Any]:
        cause = item.fields if item.fields is not None else self._cause(item)
        return follow([cause], self._agent.emitter, contract.writer.identity, position, attempt)

    def _record(self, item: Item, event: Event, contract: Contract, lineage: dict[str, Any]) -> Output:
        value = contract.encode(lineage, event)
        headers = trail.extended(item.record.headers, lineage["hop"], self._settings.hop_limit, self._agent.name)
        headers = [header for header in headers if header[0] not in _OWN]
        headers += [("traceparent", traceparent(lineage)), *contract.headers]
        made = Output(self._settings.topic(contract.topic), key_of(lineage), value, headers)
        limit = self._limit(contract.topic, MAX_RECORD_BYTES)
        if made.size > limit:
            if not isinstance(item.outcome, Emitted):  # word of a failure must get through; the dead letter keeps all
                own = [header for header in headers if header[0] in _OWN]
                return Output(made.topic, made.key, made.value, own)
            raise TooLarge(contract.writer.name, made.size, limit)
        return made

    def _limit(self, topic: str, default: int) -> int:
        """What the topic and our own producer take."""
        return min(self._wiring.limits.get(topic, default), MAX_DEAD_LETTER_BYTES) - _SPARE

    def _cause(self, item: Item) -> dict[str, Any]:
        """The lineage of bytes that are no event: the job by the record's key, the id by where it lies."""
        found: dict[str, Any] = {}
        at = coordinates(item.record, self._settings)
        envelope.complete(found, at, item.record.key, "unreadable", self._settings.flow)
        return found | {"run": item.wake.run if item.wake else 0}

    def _failed(self, item: Item, reason: str, detail: str | None, attempts: int) -> Output:
        told = None if detail is None else clean(detail)
        failed = JobFailed(agent=self._agent.name, reason=clean(reason), detail=told)
        return self._event(item, failed, 0, attempts)

    def _dead(self, item: Item, dead: DeadLettered) -> list[Output]:
        """The letter and word of it; where the agent has declared so, the job's end as well."""
        contract = self._wiring.emits[JobDeadLettered]
        lineage = self._lineage(item, contract, 0, dead.attempts)
        found = [
            self._dead_letter(item, dead, lineage),
            self._record(item, self._dead_lettered(item, dead), contract, lineage),
        ]
        if self._agent.if_dead == "fail":
            found.append(self._failed(item, "dead_lettered", f"{dead.cause}: {dead.error}", dead.attempts))
        return found

    def _dead_lettered(self, item: Item, dead: DeadLettered) -> JobDeadLettered:
        origin = coordinates(item.record, self._settings)
        return JobDeadLettered(
            agent=self._agent.name,
            cause=dead.cause,
            error=clean(dead.error),
            attempts=dead.attempts,
            dead_letter_topic=self._agent.dead_topic,
            origin_topic=origin.topic,
            origin_partition=origin.partition,
            origin_offset=origin.offset,
        )

    def _dead_letter(self, item: Item, dead: DeadLettered, lineage: dict[str, Any]) -> Output:
        record = item.record
        told = DeadLetter(
            lineage["event_id"],
            self._agent.name,
            dead.cause,
            dead.error,
            dead.last_error or dead.error,
            dead.attempts,
            coordinates(record, self._settings),
            lineage["run"],
            time.time_ns() // 1_000_000,
        )
        most = self._limit(self._agent.dead_topic, MAX_DEAD_LETTER_BYTES)
        return Output(
            self._settings.topic(self._agent.dead_topic), *told.fitted(record.key, record.value, record.headers, most)
        )


__all__ = ["DEAD", "MAX_RECORD_BYTES", "Output", "Outputs", "TooLarge"]
