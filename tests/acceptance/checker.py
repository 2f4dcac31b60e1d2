"""What must hold after every run, crash or not (ARCHITECTURE §13: 1, 2, 4, 5, 6), said of a picture in plain Python.

It shares no code with the runtime: what the runtime gets wrong, it cannot get wrong the same way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from tests import oracle
from tests.acceptance.picture import Picture, Seen, Stage, Standing

#: What an agent may emit in place of what it declares.
FAILED, DEAD_LETTERED = "jobs.JobFailed", "jobs.JobDeadLettered"

TRIAGE = (
    Stage("classify", "jobs.submitted", frozenset({"jobs.Classified"})),
    Stage("enrich", "jobs.classified", frozenset({"jobs.Enriched"})),
    Stage("act", "jobs.enriched", frozenset({"jobs.Acted"})),
    Stage("confirm", "jobs.acted", frozenset({"jobs.Done"})),
)


def complaints(picture: Picture, stages: Sequence[Stage] = TRIAGE, *, nothing_set_aside: bool = True) -> list[str]:
    """Everything that does not hold; [] when all is well.

    Args:
        nothing_set_aside: only good events were sent, so whatever is parked or dead-lettered is a fault's doing.
    """
    found = [*of_any_flow(picture), *_outputs(picture, stages)]
    if nothing_set_aside:
        found += [f"parked: {place}" for place in picture.parked]
        found += [f"dead-lettered by {letter.agent}: {letter.origin}" for letter in picture.dead]
    return found


def of_any_flow(picture: Picture) -> Iterator[str]:
    """What does not hold whatever the agents are: tables against the log, dead letters, lineage, standstill."""
    yield from _accounted(picture)
    yield from _dead_letters(picture)
    yield from _lineages(picture)
    yield from _folded(picture)
    yield from caught_up(picture.standing)


def _accounted(picture: Picture) -> Iterator[str]:
    """Each record in event_log by its id, or in parked by its place; each row of both with its record."""
    rows = Counter(row.event_id for row in picture.event_log)
    yield from (f"event_log holds {event_id} {count} times" for event_id, count in rows.items() if count > 1)
    by_place = {row.place: row for row in picture.event_log}
    if len(by_place) < len(picture.event_log):
        yield "event_log holds two events of one record"
    parked = Counter(picture.parked)
    for record in picture.records:
        row = by_place.get(record.place)
        logged = record.event_id in rows if record.event_id else row is not None
        if logged + parked[record.place] != 1:
            times = f"event_log {int(logged)} times, parked {parked[record.place]} times"
            yield f"the record {record.place} with event {record.event_id} is in {times}"
        if row and record.event_id not in (None, row.event_id):
            yield f"event_log says the record {record.place} is {row.event_id}; it is {record.event_id}"
        if row and row.value != record.value:
            yield f"event_log holds other bytes than the record {record.place}"
    there = {record.place for record in picture.records}
    for place in [*by_place, *parked]:
        if place not in there:
            yield f"the tables hold {place}, where no committed record lies"


def _dead_letters(picture: Picture) -> Iterator[str]:
    """Each names a record of the log, whole, and is told to the job; the agent emitted nothing else for it."""
    records = {record.place: record for record in picture.records}
    told = Counter(_origin(record) for record in picture.records if record.fields and record.type == DEAD_LETTERED)
    for letter in picture.dead:
        name = f"the dead letter of {letter.agent} for {letter.origin}"
        origin = records.get(letter.origin)
        if origin is None:
            yield f"{name} names no record"
            continue
        if (origin.key, origin.value) != (letter.key, letter.value):
            yield f"{name} holds other bytes than its record"
        if told[letter.agent, letter.origin] != 1:
            yield f"{name} is told to its job {told[letter.agent, letter.origin]} times"
        for other in picture.records:
            if _is_output(other, origin, letter.agent, letter.run) and other.type != DEAD_LETTERED:
                yield f"{name} stands beside an output: {other.place}"
    written = Counter((letter.agent, letter.origin) for letter in picture.dead)
    yield from (f"no dead letter for what {agent} told of {place}" for agent, place in told - written)


def _origin(record: Seen) -> tuple[str, tuple[str, int, int]]:
    fields = record.fields or {}
    return fields["agent"], (fields["origin_topic"], fields["origin_partition"], fields["origin_offset"])


def _is_output(record: Seen, cause: Seen, agent: str, run: int) -> bool:
    fields = record.fields or {}
    caused = cause.event_id is not None and fields.get("causation_id") == cause.event_id
    return caused and record.agent == agent and fields["run"] == run


def _outputs(picture: Picture, stages: Sequence[Stage]) -> Iterator[str]:
    """For each event a stage reads, that stage's one output; the ids say so, and the causes say so.

    An event's id names (cause, agent, run, type, position), so one id on two records is one output committed twice.
    """
    emitted = outputs(picture)
    ids = Counter(record.event_id for records in emitted.values() for record in records)
    yield from (f"the output {event_id} was committed {count} times" for event_id, count in ids.items() if count > 1)
    for stage in stages:
        allowed = stage.emits | {FAILED, DEAD_LETTERED}
        for event_id in _read_by(picture, stage):
            found = [record for record in emitted[event_id, stage.agent] if record.type in allowed]
            if len(found) != 1:
                yield f"{stage.agent} committed {len(found)} outputs for {event_id}: {[o.place for o in found]}"


def outputs(picture: Picture) -> dict[tuple[str, str], list[Seen]]:
    """What was emitted, by (the cause's id, the agent)."""
    emitted: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    for record in picture.records:
        if record.fields and record.fields.get("causation_id"):
            emitted[record.fields["causation_id"], record.agent].append(record)
    return emitted


def _read_by(picture: Picture, stage: Stage) -> Iterable[str]:
    """The ids of the events on the stage's topic, strangers' included: theirs stand in event_log alone."""
    by_place = {row.place: row.event_id for row in picture.event_log}
    found = (r.event_id or by_place.get(r.place) for r in picture.records if r.fields and r.place[0] == stage.reads)
    return dict.fromkeys(event_id for event_id in found if event_id)


def _lineages(picture: Picture) -> Iterator[str]:
    known = {record.event_id: record for record in picture.records if record.event_id}
    for record in picture.records:
        yield from _lineage(record, known.get((record.fields or {}).get("causation_id") or ""))


def _lineage(record: Seen, cause: Seen | None) -> Iterator[str]:
    """An output stands one hop behind its cause, in the same job and run."""
    if cause is None or record.fields is None or cause.fields is None:
        return
    expected = (cause.fields["trace_id"], cause.fields["run"], cause.fields["hop"] + 1)
    found = (record.fields["trace_id"], record.fields["run"], record.fields["hop"])
    if found != expected:
        yield f"the output {record.place} is of (job, run, hop) {found}; its cause says {expected}"


def _folded(picture: Picture) -> Iterator[str]:
    """job_state, column by column, as a fold in plain Python makes it of the topics."""
    expected = oracle.jobs(happened(picture))
    for trace_id in sorted(expected.keys() | picture.jobs.keys()):
        want, have = expected.get(trace_id), picture.jobs.get(trace_id)
        if want is None or have is None:
            yield f"job {trace_id} is only {'in the table' if want is None else 'on the log'}"
        elif want != have:
            new, old = asdict(have), asdict(want)
            differs = {name: (new[name], old[name]) for name in new if new[name] != old[name]}
            yield f"job {trace_id}: (table, fold) differ in {differs}"


def happened(picture: Picture) -> Iterator[oracle.Happened]:
    rows = {row.place: row for row in picture.event_log}
    logged = {row.event_id: row.place for row in picture.event_log}
    for record in picture.records:
        if record.fields is None or logged.get(record.event_id or "", record.place) != record.place:
            continue  # of records with one event id the first that was folded stays, and no order of topics tells which
        fields = dict(record.fields)
        if record.event_id is None and (row := rows.get(record.place)):  # a stranger's, completed from where it lies
            fields |= {"event_id": row.event_id, "trace_id": row.trace_id, "occurred_at": row.occurred_at}
            fields |= {"run": 0, "hop": 0, "attempt": 1}
        outcome = record.schema.get("terminal") or ("blocked" if record.schema.get("blocks") else None)
        if "trace_id" in fields:
            yield oracle.Happened(fields, record.schema.get("stage"), outcome)


def caught_up(standing: Standing) -> Iterator[str]:
    """The stored positions are the ends of the log, transaction markers included."""
    for place, end in sorted(standing.ends.items()):
        if standing.positions.get(place, 0) != end:
            yield f"the projector is at {standing.positions.get(place, 0)} of {end} in {place}"
    yield from (f"{agent} lags by {lag}" for agent, lag in standing.lags.items() if lag)
