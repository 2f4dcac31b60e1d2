"""What an outcome puts on the log: events with their lineage, or a dead letter with the raw record and its causes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from farandole import envelope
from farandole.agent import Wiring
from farandole.envelope import follow, key_of
from farandole.event import Event, JobDeadLettered, JobFailed
from farandole.kafka import MAX_DEAD_LETTER_BYTES, Headers
from farandole.outcome import DeadLettered, Emitted, Failed, Skipped, Suspended
from farandole.records import coordinates
from farandole.settings import Settings
from farandole.worker.holdings import Item

#: Bytes. Kafka's default limit for a record of a topic is 1,048,588 with its frame; one above it aborts the transaction
#: of its whole batch.
MAX_RECORD_BYTES = 1_000_000

#: Names of the headers that a dead letter carries besides those of the record itself.
DEAD = "farandole.dead."


@dataclass(frozen=True, slots=True)
class Output:
    """One record to produce; `topic` is the broker's name."""

    topic: str
    key: str | bytes | None
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        """Bytes on the log, about: key, value and headers, with their frames."""
        return (
            len(self.key or b"")
            + len(self.value or b"")
            + sum(len(n) + len(v or b"") + 8 for n, v in self.headers)
            + 64
        )


class Outputs:
    """Builds the records of an agent's outcomes."""

    def __init__(self, settings: Settings, wiring: Wiring) -> None:
        self._settings = settings
        self._wiring = wiring

    def of(self, item: Item) -> list[Output]:
        """The records that `item`'s outcome puts on the log. An output that cannot be written becomes a dead letter."""
        if not isinstance(item.outcome, Emitted):
            return self._of(item)
        try:
            return self._of(item)
        except TooLarge as error:
            item.outcome = DeadLettered("too_large", str(error), item.outcome.attempts)
        except Exception as error:  # noqa: BLE001  a user's event may fail to encode in any way
            item.outcome = DeadLettered("wrong_output", f"{type(error).__name__}: {error}", item.outcome.attempts)
        return self._of(item)

    def _of(self, item: Item) -> list[Output]:
        match item.outcome:
            case Emitted(events, attempts):
                return [self._event(item, event, position, attempts) for position, event in enumerate(events)]
            case Failed(reason, detail, attempts):
                failed = JobFailed(agent=self._wiring.agent.name, reason=reason, detail=_clean(detail))
                return [self._event(item, failed, 0, attempts)]
            case DeadLettered() as dead:
                return [
                    self._dead_letter(item, dead),
                    self._event(item, self._dead_lettered(item, dead), 0, dead.attempts),
                ]
            case Skipped() | Suspended() | None:
                return []

    def _event(self, item: Item, event: Event, position: int, attempt: int) -> Output:
        contract = self._wiring.emits[type(event)]
        cause = item.fields if item.fields is not None else self._cause(item)
        lineage = follow([cause], self._wiring.agent.emitter, contract.writer.name, position, attempt)
        value = contract.encode(lineage, event)
        headers = [header for header in item.record.headers if header[0] != "traceparent"]
        headers.append(("traceparent", _traceparent(lineage)))
        made = Output(self._settings.topic(contract.topic), key_of(lineage), value, headers)
        if made.size > MAX_RECORD_BYTES:
            if not isinstance(item.outcome, Emitted):  # word of a failure must get through; the dead letter keeps all
                return Output(made.topic, made.key, made.value, headers[-1:])
            raise TooLarge(f"{contract.writer.name} has {made.size:,} bytes; a record may have {MAX_RECORD_BYTES:,}")
        return made

    def _cause(self, item: Item) -> dict[str, Any]:
        """The lineage of bytes that are no event: the job by the record's key, the id by where it lies."""
        found: dict[str, Any] = {}
        at = coordinates(item.record, self._settings)
        envelope.complete(found, at, item.record.key, "unreadable", self._settings.flow)
        return found

    def _dead_lettered(self, item: Item, dead: DeadLettered) -> JobDeadLettered:
        record = item.record
        return JobDeadLettered(
            agent=self._wiring.agent.name,
            cause=dead.cause,
            error=_clean(dead.error) or "",
            attempts=dead.attempts,
            dead_letter_topic=self._wiring.agent.dead_topic,
            origin_topic=self._settings.bare(record.topic),
            origin_partition=record.partition,
            origin_offset=record.offset,
        )

    def _dead_letter(self, item: Item, dead: DeadLettered) -> Output:
        record = item.record
        found = {
            "agent": self._wiring.agent.name,
            "cause": dead.cause,
            "error": _clean(dead.error) or "",
            "attempts": dead.attempts,
            "topic": self._settings.bare(record.topic),
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "run": item.fields["run"] if item.fields else 0,
            "at": time.time_ns() // 1_000_000,
        }
        headers = [*record.headers, *((DEAD + name, str(value).encode()) for name, value in found.items())]
        made = Output(self._settings.topic(self._wiring.agent.dead_topic), record.key, record.value, headers)
        over = made.size - (MAX_DEAD_LETTER_BYTES - 1024)
        if over <= 0:
            return made
        # Only on a topic whose limit was raised. Cut it rather than stop: the origin says where the whole record lies.
        value = (record.value or b"")[: max(0, len(record.value or b"") - over - 64)]
        cut = (DEAD + "cut_from_bytes", str(len(record.value or b"")).encode())
        return Output(made.topic, made.key, value, [*headers[len(record.headers) :], cut])


class TooLarge(Exception):
    """An output is larger than its topic takes."""


def _traceparent(lineage: dict[str, Any]) -> bytes:
    """W3C trace context, version 00: the job is the trace, the event the span."""
    event = lineage["event_id"]
    return f"00-{lineage['trace_id'].replace('-', '')}-{event[19:23]}{event[24:]}-01".encode()


def _clean(text: str | None) -> str | None:
    """Lone surrogates have no UTF-8 form; an error text may quote some."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()[:2000]


__all__ = ["DEAD", "MAX_RECORD_BYTES", "Output", "Outputs", "TooLarge"]
