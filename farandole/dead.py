"""Dead letters as the projection knows them, and as the log does: listed, counted, read raw."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from farandole import dead_letter, reading, records, scan
from farandole.contracts import codec
from farandole.contracts.codec import Contract
from farandole.contracts.lookup import Schemas
from farandole.dead_letter import DeadLetter
from farandole.errors import Poison
from farandole.event import Event, JobDeadLettered, JobDiscarded, JobRedriven
from farandole.kafka import Record
from farandole.postgres import Connection
from farandole.settings import Settings
from farandole.standing import ALIVE

log = logging.getLogger("farandole.dead")

#: The record and word of it are of one transaction; their timestamps differ by what the producer waited in between.
_APART = timedelta(minutes=5)

#: Letters that the projection does not know are counted so far.
MANY = 10_000

ANSWERS: dict[str, type[Event]] = {"redriven": JobRedriven, "discarded": JobDiscarded}


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter, by the event that tells of it. Topics are without the namespace."""

    event_id: UUID
    trace_id: UUID
    run: int
    hop: int
    scope_id: UUID | None
    part: int | None
    parts: int | None
    tenant: str | None
    agent: str
    cause: str
    error: str  #: the first one
    attempts: int
    dead_letter_topic: str
    origin_topic: str
    origin_partition: int
    origin_offset: int
    logged_at: datetime
    answer: str | None  #: redriven, discarded, or None: it is open
    reason: str | None  #: of the answer
    answered_at: datetime | None

    @property
    def fields(self) -> dict[str, Any]:
        """The envelope that an answer follows."""
        return {
            "event_id": str(self.event_id),
            "trace_id": str(self.trace_id),
            "run": self.run,
            "hop": self.hop,
            "scope_id": str(self.scope_id) if self.scope_id else None,
            "part": self.part,
            "parts": self.parts,
            "tenant": self.tenant,
        }


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which letters: those that fit all that is given. `answered` adds those that are no longer open."""

    agent: str | None = None
    cause: str | None = None
    older_than: datetime | None = None
    newer_than: datetime | None = None
    trace_id: UUID | str | None = None
    event_id: UUID | str | None = None
    limit: int | None = None
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """Letters of one agent and cause."""

    agent: str
    cause: str
    letters: int
    oldest: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class Unfolded:
    """What lies on the log and the projector has not folded yet."""

    letters: int  #: dead letters; MANY stands for so many or more
    answered: frozenset[UUID]  #: letters that were redriven or discarded


def letters(connection: Connection[Any], chosen: Chosen, gone: Iterable[UUID] = ()) -> list[Letter]:
    """The letters, the oldest first; without those in `gone`."""
    return [Letter(**row) for row in reading.rows(connection, "dead_letters", asdict(chosen) | {"gone": list(gone)})]


def counts(connection: Connection[Any], chosen: Chosen, gone: Iterable[UUID] = ()) -> list[Count]:
    """How many they are, by agent and cause, whatever the limit."""
    return [Count(**row) for row in reading.rows(connection, "dead_counts", asdict(chosen) | {"gone": list(gone)})]


def attended(connection: Connection[Any]) -> set[str]:
    """Agents that have a living worker."""
    return {row["agent"] for row in reading.rows(connection, "dead_attended", {"alive": ALIVE})}


def unfolded(settings: Settings, connection: Connection[Any]) -> Unfolded:
    """What the projection will know later. To be asked before it: what is folded in between is then in both."""
    answered = {UUID(found) for event in ANSWERS.values() for found in _answered(settings, connection, event)}
    number = 0
    for _ in _beyond(settings, connection, codec.contract(JobDeadLettered, settings.flow)):
        number += 1
        if number == MANY:
            break
    return Unfolded(number, frozenset(answered))


def _answered(settings: Settings, connection: Connection[Any], event: type[Event]) -> Iterator[str]:
    contract = codec.contract(event, settings.flow)
    schemas = Schemas(settings)
    for record in _beyond(settings, connection, contract):
        try:
            schemas.learn(records.schema_keys([record]))
            written = records.writer_of(record, schemas)
            if written.name == contract.writer.name:
                yield records.decode(record, written, settings, contract.writer).fields["dead_event_id"]
        except Poison as poison:  # whatever lies there, it answers no letter
            log.warning("not_an_answer %s [%d] %d: %s", record.topic, record.partition, record.offset, poison)


def _beyond(settings: Settings, connection: Connection[Any], contract: Contract) -> Iterator[Record]:
    positions = {
        row["partition"]: row["next_offset"] for row in reading.rows(connection, "folded", {"topic": contract.topic})
    }
    return scan.beyond(settings, contract.topic, positions)


def raw(settings: Settings, wanted: Sequence[Letter]) -> Iterator[tuple[Letter, Record, DeadLetter]]:
    """The records of these letters as they were, by one reading of each agent's dead letters; some may be gone."""
    topics = {letter.dead_letter_topic for letter in wanted}
    for topic in sorted(topics):
        of_topic = [letter for letter in wanted if letter.dead_letter_topic == topic]
        missing = {str(letter.event_id): letter for letter in of_topic}
        begin = min(letter.logged_at for letter in of_topic) - _APART
        for record in scan.since(settings, topic, int(begin.timestamp() * 1000)):
            found, told = dead_letter.unwrap(record)
            letter = missing.pop(told.event_id, None) if told else None
            if letter and told:
                yield letter, found, told
            if not missing:
                break


def whole(settings: Settings, record: Record, told: DeadLetter) -> Record | None:
    """The record that could not be handled, from where it lay at first if the letter holds only a part of it. None when
    it is gone from there."""
    if told.cut_from_bytes is None:
        return record
    place = told.origin
    return scan.at(settings, place.topic, place.partition, place.offset, place.timestamp_ms)


def decoded(settings: Settings, record: Record, told: DeadLetter) -> dict[str, Any] | str:
    """The event in the record, or a sentence on why there is none to be read."""
    schemas = Schemas(settings)
    place = told.origin
    at_first = Record(
        settings.topic(place.topic), place.partition, place.offset, place.timestamp_ms,
        record.key, record.value, record.headers,
    )  # fmt: skip
    try:
        schemas.learn(records.schema_keys([at_first]))
        return records.decode(at_first, records.writer_of(at_first, schemas), settings).fields
    except Poison as poison:
        return f"{poison.cause}: {poison}"
