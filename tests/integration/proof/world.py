"""What a plan puts into the log: the records of each partition, and what each of them means in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from farandole import envelope
from farandole.contracts import codec
from farandole.kafka import Record
from farandole.projector.store import Place
from farandole.settings import Settings
from tests.integration.proof.plans import MOMENTS, PARTITIONS, TEXTS, Bad, Good, Hole, Lying, Slot
from tests.journeys import EVENTS, START, TOPICS, Log, Submitted
from tests.oracle import Happened

PLACES: list[Place] = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]

#: A constraint that a record may break: no fold and no column's type has a say in it, and a refold leaves it alone.
REFUSED_HOP = 4711
CONSTRAINT = f"ALTER TABLE event_log ADD CONSTRAINT no_such_hop CHECK (hop <> {REFUSED_HOP})"


@dataclass(frozen=True, slots=True)
class Lies:
    """A record where it lies; `happened` is None for one that must be parked."""

    record: Record
    trace: str
    happened: Happened | None
    content: str = ""


@dataclass(slots=True)
class World:
    """The log, whole from the start; projectors take it piece by piece."""

    settings: Settings
    slots: list[Slot]
    log: list[Lying]
    lies: dict[Place, list[Lies]] = field(default_factory=dict)
    ends: dict[Place, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        written = Log(self.settings)
        self.lies = {place: [] for place in PLACES}
        for lying in self.log:
            if isinstance(lying, Hole):
                written.put(TOPICS[lying.topic], lying.partition, b"")
            else:
                found = self._bad(written, lying) if isinstance(lying, Bad) else self._good(written, lying)
                self.lies[self.settings.bare(found.record.topic), found.record.partition].append(found)
        self.ends = {place: written.ends.get(place, 0) for place in PLACES}

    def _good(self, log: Log, good: Good) -> Lies:
        number = good.slot % len(self.slots)
        slot, event = self.slots[number], EVENTS[self.slots[number].kind]
        causes = [before for before in range(number) if self.slots[before].job == slot.job]
        fields = _fields(trace_of(slot.job), number) | {
            "causation_id": _event_id(trace_of(slot.job), causes[-1]) if causes else None,
            "run": slot.run,
            "hop": slot.hop,
            "attempt": slot.attempt + good.late,
            "occurred_at": START + 1_000_000 * (MOMENTS[slot.moment] + 60 * good.late),
        }
        text = TEXTS[good.text]
        record = log.append(event, fields, good.partition, text=text)
        payload = event.model_validate({"text": text.replace("\0", "\ufffd")}).model_dump()
        writer = codec.contract(event, self.settings.flow).writer
        return Lies(
            record, fields["trace_id"], Happened(fields, writer.stage, writer.outcome, writer.name, payload), text
        )

    def _bad(self, log: Log, bad: Bad) -> Lies:
        trace = trace_of(bad.job)
        if bad.refused:
            fields = _fields(trace, 100 + bad.topic) | {"hop": REFUSED_HOP}
            return Lies(log.append(Submitted, fields, bad.partition), trace, None)
        return Lies(log.put(TOPICS[bad.topic], bad.partition, b"\x01no event", trace.encode()), trace, None)


def trace_of(job: int) -> str:
    """Ids that differ in one digit, and lie on both sides of an hour of their prefix."""
    return str(UUID(int=(0x0190_0000_0000 + job * 3_600_000) << 80 | 0x7000_8000_0000_0000_0000 | job))


def _fields(trace: str, number: int) -> dict[str, Any]:
    fields = envelope.begin(trace, envelope.Emitter("agent", "1"), "jobs.Any", tenant=f"of {trace[-1]}")
    return fields | {"event_id": _event_id(trace, number)}


def _event_id(trace: str, number: int) -> str:
    return f"{trace[:-4]}{number + 1:04x}"
