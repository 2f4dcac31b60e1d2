"""Random journeys of jobs, as records in a log: odd clocks, redrives, dead letters, events without a stage."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from farandole import envelope, ids
from farandole.contracts import codec
from farandole.contracts.lookup import Schemas
from farandole.event import Event
from farandole.kafka import Record
from farandole.settings import Settings
from tests.oracle import Happened


class Submitted(Event, topic="jobs.submitted", stage="submitted"):
    text: str


class Classified(Event, topic="jobs.classified", stage="classified"):
    text: str
    score: float = 0.5


class Noted(Event, topic="jobs.classified"):
    """Leaves the job where it is."""

    text: str


class Blocked(Event, topic="jobs.dead_lettered", blocks=True):
    text: str


class Done(Event, topic="jobs.done", stage="done", terminal="done"):
    text: str


class GaveUp(Event, topic="jobs.done", terminal="failed"):
    """Ends the job without naming a stage."""

    text: str


EVENTS: tuple[type[Event], ...] = (Submitted, Classified, Noted, Blocked, Done, GaveUp)
TOPICS = tuple(sorted({event.__event__.topic for event in EVENTS}))
#: Microseconds: a minute before midnight, so that days differ.
START = 1_782_863_940_000_000


@dataclass(slots=True)
class Log:
    """Topics of one partition as a list; gives every record its next offset."""

    settings: Settings
    ends: dict[tuple[str, int], int] = field(default_factory=dict)

    def append(self, event: type[Event], fields: dict[str, Any], partition: int = 0, **payload: Any) -> Record:
        contract = codec.contract(event, self.settings.flow)
        value = contract.encode(fields, event.model_validate({"text": "hello"} | payload))
        return self.put(contract.topic, partition, value, envelope.key_of(fields).encode())

    def put(self, topic: str, partition: int, value: bytes | None, key: bytes | None = None) -> Record:
        offset = self.ends.get((topic, partition), 0)
        self.ends[topic, partition] = offset + 1
        return Record(self.settings.topic(topic), partition, offset, START // 1000, key, value, [])


def schemas(settings: Settings) -> Schemas:
    """A schema log that knows the events of this module, without a broker."""
    log = Schemas(settings)
    for event in EVENTS:
        log.add(codec.contract(event, settings.flow).writer)
    return log


@dataclass(frozen=True, slots=True)
class Fact:
    """An event to be written, maybe more than once."""

    event: type[Event]
    fields: dict[str, Any]
    payload: dict[str, Any] = field(default_factory=dict)  #: beside the text

    @property
    def happened(self) -> Happened:
        written = codec.contract(self.event, "jobs").writer
        return Happened(self.fields, written.stage, written.outcome, written.name, {"text": "hello"} | self.payload)


def facts(seed: int, count: int) -> list[Fact]:
    """The events of `count` jobs, in the order in which they happened to be written."""
    chance = random.Random(seed)
    made = [fact for _ in range(count) for fact in _journey(chance)]
    chance.shuffle(made)
    return made


def _journey(chance: random.Random) -> Iterable[Fact]:
    trace = str(UUID(int=chance.getrandbits(128), version=4))
    emitter = envelope.Emitter("agent", "1")
    last = envelope.begin(trace, emitter, "jobs.Submitted", tenant=chance.choice([None, "acme"]))
    last["occurred_at"] = START + chance.randrange(120_000_000)
    yield Fact(Submitted, last)
    for position in range(chance.randrange(8)):
        event = chance.choice(EVENTS[1:])
        last = envelope.follow([last], emitter, f"jobs.{event.__name__}", position, chance.choice([1, 1, 3]))
        last["occurred_at"] = START + chance.randrange(120_000_000)
        last["run"] += chance.random() < 0.2
        last["hop"] -= chance.random() < 0.2  # two events of one hop
        yield Fact(event, last)


def new_fact(event: type[Event], trace: str | None = None, cause: Fact | None = None, **changed: Any) -> Fact:
    """One event: the first of a job, or caused by another; envelope fields as given."""
    emitter = envelope.Emitter("agent", "1")
    fields = (
        envelope.follow([cause.fields], emitter, f"jobs.{event.__name__}", 0)
        if cause
        else envelope.begin(trace or ids.new_trace_id(), emitter, f"jobs.{event.__name__}")
    )
    return Fact(event, fields | changed)


def written(log: Log, chosen: Sequence[Fact], partition: int = 0) -> list[Record]:
    return [log.append(fact.event, fact.fields, partition, **fact.payload) for fact in chosen]
