"""What must hold after a run under fire, said in plain Python of topics, tables, and what senders and handlers wrote down.

It shares no code with the runtime.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests import oracle
from tests.acceptance.checker import DEAD_LETTERED, FAILED, happened, of_any_flow, outputs
from tests.acceptance.picture import Picture, Place, Seen
from tests.chaos.handlings import Handling, in_order

#: What an agent reads, and emits for every event it is not told to treat otherwise.
ROUTES = {
    "quick": ("jobs.sent", "jobs.Sent", "jobs.Sorted"),
    "slow": ("jobs.sorted", "jobs.Sorted", "jobs.Worked"),
    "plain": ("jobs.worked", "jobs.Worked", "jobs.Finished"),
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of a run once it has come to rest."""

    picture: Picture
    agents: Sequence[str]
    acknowledged: Mapping[Place, str]  #: event ids that the broker took from the load, by where they lie
    poison: frozenset[Place]
    handlings: Mapping[str, Handling]
    waits: Sequence[tuple[str, str]]  #: (agent, event id) of what still waits
    stage_times: Mapping[Any, Any]
    holds: bool  #: the last agent's events of a key wait for one that is put off, too
    claims_may_be_lost: bool  #: the database crashed: what it had not yet written of claims is gone, as documented


def complaints(found: Evidence) -> list[str]:
    """Everything that does not hold; [] when all is well."""
    return [
        *of_any_flow(found.picture),
        *_arrived(found),
        *_set_aside(found),
        *_stage_times(found),
        *(complaint for agent in found.agents for complaint in _accounts(found, agent)),
        *(complaint for agent in found.agents for complaint in _order(found, agent)),
    ]


def expected(agent: str, fields: Mapping[str, Any]) -> frozenset[str]:
    """The types that an agent emits for an event, by what the event tells its handler to do."""
    how = fields["work"].partition(".")[2] if fields["work"].startswith(f"{agent}.") else ""
    if how == "reject":
        return frozenset({DEAD_LETTERED})
    if how == "fail":
        return frozenset({FAILED})
    noted = {"jobs.Noted"} if agent == "quick" and fields["seq"] % 5 == 0 else set()
    return frozenset({ROUTES[agent][2]} | noted)


def _arrived(found: Evidence) -> Iterator[str]:
    """What the broker acknowledged lies where it said."""
    there = {record.place: record.event_id for record in found.picture.records}
    for place, event_id in found.acknowledged.items():
        if there.get(place) != event_id:
            yield f"the record {place} was acknowledged with event {event_id}; there lies {there.get(place)}"


def _inputs(found: Evidence, agent: str) -> dict[str, list[Seen]]:
    """The records of each event that an agent reads, by topic, partition and offset."""
    topic, name, _ = ROUTES[agent]
    read: dict[str, list[Seen]] = defaultdict(list)
    for record in found.picture.records:
        if record.place[0] == topic and record.fields and record.type == name and record.event_id:
            read[record.event_id].append(record)
    return read


def _accounts(found: Evidence, agent: str) -> Iterator[str]:
    """Every event has come to exactly one end at every agent that reads it, and each end has one cause."""
    emitted, inputs, waits = outputs(found.picture), _inputs(found, agent), Counter(found.waits)
    for event_id, copies in inputs.items():
        wanted = expected(agent, copies[0].fields or {})
        made = Counter(record.type for record in emitted[event_id, agent])
        waiting = waits[agent, event_id]
        if waiting and (made or waiting > 1):
            yield f"{agent} has a wait for {event_id}, which has ended: {dict(made)}"
        if not waiting and made.keys() != wanted:
            yield f"{agent} committed {sorted(made)} for {event_id} at {copies[0].place}; expected {sorted(wanted)}"
        most = len(copies) if found.claims_may_be_lost else 1
        for record in emitted[event_id, agent]:
            if made[record.type] > most:
                yield f"{agent} committed {record.type} {made[record.type]} times for {event_id}: {record.place}"
    for (cause, who), records in emitted.items():
        if who == agent and cause not in inputs:
            for record in records:
                if record.type != DEAD_LETTERED:  # of poison, which names no event
                    yield f"{agent} committed {record.place} for {cause}, which it was never given"


def _set_aside(found: Evidence) -> Iterator[str]:
    """Parked and dead-lettered is the poison that was sent, and what handlers were told to reject; nothing else."""
    parked = Counter(found.picture.parked)
    yield from (f"parked without being poison: {place}" for place in parked if place not in found.poison)
    yield from (f"poison was not parked: {place}" for place in found.poison if place not in parked)
    for agent in found.agents:
        letters = Counter(letter.origin for letter in found.picture.dead if letter.agent == agent)
        poison = {place for place in found.poison if place[0] == ROUTES[agent][0]}
        rejected = _rejected(found, agent)
        for place, count in letters.items():
            if count > 1 or (place not in poison and place not in rejected):
                yield f"{agent} dead-lettered {place} {count} times: {'poison' if place in poison else rejected.get(place)}"
        yield from (f"{agent} did not dead-letter the poison at {place}" for place in poison if place not in letters)


def _rejected(found: Evidence, agent: str) -> dict[Place, str]:
    wanted = frozenset({DEAD_LETTERED})
    inputs = _inputs(found, agent).values()
    return {
        record.place: str(record.event_id)
        for copies in inputs
        for record in copies
        if expected(agent, record.fields or {}) == wanted
    }


def _order(found: Evidence, agent: str) -> Iterator[str]:
    """Per key, what was committed was handled in the order of the log, one after the other, and lies in that order."""
    emitted = outputs(found.picture)
    for key, records in _ordered_keys(found, agent).items():
        made = [_made(emitted[str(record.event_id), agent]) for record in records]
        done = [output for output in made if output]
        names = [str((output.fields or {})["handling"]) for output in done]
        missing = [name for name in names if name not in found.handlings]
        yield from (f"{agent} emitted from the handling {name}, which the ledger does not know" for name in missing)
        if missing:
            continue
        for before, after in in_order([found.handlings[name] for name in names]):
            yield (
                f"{agent}, key {key!r}: {after.event_id} (handling {after.name}) was handled before {before.event_id}"
                f" (handling {before.name}) had ended, which comes first in the log"
            )
        places = [output.place for output in done]
        if len({place[:2] for place in places}) == 1 and places != sorted(places):
            yield f"{agent}, key {key!r}: outputs lie in another order than their causes: {places}"


def _made(emitted: list[Seen]) -> Seen | None:
    """The first output that names its handling."""
    return next((record for record in emitted if (record.fields or {}).get("handling")), None)


def _ordered_keys(found: Evidence, agent: str) -> dict[bytes, list[Seen]]:
    """The events of each key that has an order: all in one partition, and none of them put off and overtaken."""
    keys: dict[bytes, list[Seen]] = defaultdict(list)
    for copies in _inputs(found, agent).values():
        for record in copies:
            keys[record.key or b""].append(record)
    ordered: dict[bytes, list[Seen]] = {}
    for key, records in keys.items():
        put_off = any((record.fields or {})["work"] == f"{agent}.retry" for record in records)
        if key and (found.holds or not put_off) and len({record.place[1] for record in records}) == 1:
            first = {record.event_id: record for record in sorted(records, key=lambda r: r.place, reverse=True)}
            ordered[key] = sorted(first.values(), key=lambda record: record.place)
    return ordered


def _stage_times(found: Evidence) -> Iterator[str]:
    """The other projection, as a fold in plain Python makes it of the topics."""
    wanted = oracle.stage_times(happened(found.picture))
    for place in sorted(wanted.keys() | found.stage_times.keys()):
        if wanted.get(place) != found.stage_times.get(place):
            yield f"stage_times {place}: {found.stage_times.get(place)} in the table, {wanted.get(place)} by the fold"
