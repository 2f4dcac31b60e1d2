"""What the tables must hold, computed in plain Python from the events: written without a look at the SQL."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TERMINAL = ("done", "failed")


@dataclass(frozen=True, slots=True)
class Happened:
    """An event as far as a fold looks at it; ids and times as on the wire."""

    fields: dict[str, Any]
    stage: str | None
    outcome: str | None
    type: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def at(self) -> datetime:
        return EPOCH + timedelta(microseconds=self.fields["occurred_at"])

    @property
    def key(self) -> tuple[int, bool, int, int, str]:
        """Of two events of a job, the one with the greater key says where the job is."""
        f = self.fields
        return f["run"], self.outcome in TERMINAL, f["hop"], f["occurred_at"], f["event_id"]


@dataclass(frozen=True, slots=True)
class JobRow:
    """What job_state shows of a job."""

    stage: str | None
    status: str
    attempts: int
    run: int
    hop: int
    events: int
    dead_letters: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Shown:
    """All that job_state shows of a job whose events made no model call."""

    row: JobRow
    tenant: str | None
    data: dict[str, Any]  #: by stage, the payload of the greatest event there
    conflicts: int
    parked: int


def once(events: Iterable[Happened]) -> list[Happened]:
    """Each event id once; the first one stays."""
    seen: dict[str, Happened] = {}
    for event in events:
        seen.setdefault(event.fields["event_id"], event)
    return list(seen.values())


def jobs(events: Iterable[Happened]) -> dict[str, JobRow]:
    """job_state by trace_id."""
    traces: dict[str, list[Happened]] = {}
    for event in once(events):
        traces.setdefault(event.fields["trace_id"], []).append(event)
    return {trace: _job(journey) for trace, journey in traces.items()}


def _job(journey: list[Happened]) -> JobRow:
    run = max(event.fields["run"] for event in journey)
    blocks = [event.fields["run"] for event in journey if event.outcome == "blocked"]
    moving = [event for event in journey if event.stage is not None or event.outcome in TERMINAL]
    leading = max(moving, key=lambda event: event.key, default=None)
    status = "blocked" if run in blocks else "running"
    if leading and (leading.outcome == "done" or (leading.outcome == "failed" and leading.fields["run"] == run)):
        status = str(leading.outcome)  # a failure of an earlier run is history
    return JobRow(
        stage=(leading.stage or leading.outcome) if leading else None,
        status=status,
        attempts=sum(event.fields["attempt"] for event in journey),
        run=run,
        hop=max(event.fields["hop"] for event in journey),
        events=len(journey),
        dead_letters=len(blocks),
        created_at=min(event.at for event in journey),
        updated_at=max(event.at for event in journey),
    )


def shown(events: Iterable[Happened], conflicts: Iterable[str], parked: Iterable[str]) -> dict[str, Shown]:
    """job_state whole, by trace_id; `conflicts` and `parked` name a job for each such record. A job has one tenant."""
    kept, disputed, aside = once(events), Counter(conflicts), Counter(parked)
    return {
        trace: Shown(
            row,
            next(event.fields["tenant"] for event in kept if event.fields["trace_id"] == trace),
            _data(event for event in kept if event.fields["trace_id"] == trace),
            disputed[trace],
            aside[trace],
        )
        for trace, row in jobs(kept).items()
    }


def _data(journey: Iterable[Happened]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for event in sorted(journey, key=lambda event: event.key):
        if event.stage is not None:
            found[event.stage] = event.body
    return found


def stage_times(events: Iterable[Happened]) -> dict[tuple[str, date], tuple[int, int, datetime, datetime]]:
    """(events, attempts, first_at, last_at) by stage and UTC day."""
    found: dict[tuple[str, date], list[Happened]] = {}
    for event in once(events):
        if event.stage is not None:
            found.setdefault((event.stage, event.at.date()), []).append(event)
    return {
        place: (
            len(there),
            sum(event.fields["attempt"] for event in there),
            min(event.at for event in there),
            max(event.at for event in there),
        )
        for place, there in found.items()
    }


#: When an agent claimed an event, by (event id, agent, run).
Claims = Mapping[tuple[str, str, int], datetime]


@dataclass(slots=True)
class Lengths:
    """How many pairs of an event and its cause have a length, and the longest whole time among them."""

    whole: int = 0
    waiting: int = 0
    working: int = 0
    longest: timedelta = timedelta(0)


def stage_counts(events: Iterable[Happened], claims: Claims) -> dict[tuple[str, date, int], Lengths]:
    """By stage, UTC day and bucket: how long it took from a cause to its event, and to the claim between them."""
    every = once(events)
    causes = {(event.fields["trace_id"], event.fields["event_id"]): event for event in every}
    found: dict[tuple[str, date, int], Lengths] = {}
    for event in every:
        cause = causes.get((event.fields["trace_id"], event.fields["causation_id"] or ""))
        if event.stage is None or cause is None:
            continue

        whole = max(event.at - cause.at, timedelta(0))
        place = _at(found, event, whole)
        place.whole += 1
        place.longest = max(place.longest, whole)
        agent = event.fields["emitted_by"].split(" ")[0]
        claimed = claims.get((cause.fields["event_id"], agent, event.fields["run"]))
        if claimed is not None:
            waiting = min(max(claimed - cause.at, timedelta(0)), whole)
            _at(found, event, waiting).waiting += 1
            _at(found, event, whole - waiting).working += 1
    return found


def _at(found: dict[tuple[str, date, int], Lengths], event: Happened, length: timedelta) -> Lengths:
    return found.setdefault((str(event.stage), event.at.date(), bucket(length)), Lengths())


def bucket(length: timedelta) -> int:
    """Eight buckets to each doubling, of equal width: 0 for none, 8 * 1023 for one second."""
    seconds = length / timedelta(seconds=1)
    if not seconds:
        return 0
    fraction, exponent = math.frexp(seconds)  # from 1/2 to 1, times 2 to the exponent
    return 8 * (exponent - 1 + 1023) + int((2 * fraction - 1) * 8)


def throughput(events: Iterable[Happened]) -> dict[datetime, tuple[int, int, int, int, int]]:
    """(events, begun, done, failed, blocked) by UTC minute."""
    minutes: dict[datetime, Counter[str]] = {}
    for event in once(events):
        count = minutes.setdefault(event.at.replace(second=0, microsecond=0), Counter())
        count["events"] += 1
        count["begun"] += event.fields["causation_id"] is None
        count[str(event.outcome)] += 1
    return {
        minute: (count["events"], count["begun"], count["done"], count["failed"], count["blocked"])
        for minute, count in minutes.items()
    }


@dataclass(frozen=True, slots=True)
class Failures:
    """What is told of failures that have agent, outcome and cause in common."""

    times: int
    first_seen: datetime
    last_seen: datetime
    last_event: str
    last_job: str
    last_error: str | None


def failures(events: Iterable[Happened]) -> dict[tuple[str, str, str], Failures]:
    """By agent, outcome (blocked, failed) and cause."""
    found: dict[tuple[str, str, str], list[Happened]] = {}
    for event in once(events):
        if event.outcome in ("blocked", "failed"):
            agent = _told(event, "agent") or event.fields["emitted_by"].split(" ")[0]
            cause = _told(event, "cause", "reason") or event.type
            if event.type.endswith(".JobDiscarded"):
                cause = "discarded"
            found.setdefault((agent[:200], event.outcome, cause[:200]), []).append(event)
    return {key: _failures(there) for key, there in found.items()}


def _failures(there: list[Happened]) -> Failures:
    last = max(there, key=lambda event: (event.at, event.fields["event_id"]))
    error = _told(last, "error", "detail", "reason")
    return Failures(
        times=len(there),
        first_seen=min(event.at for event in there),
        last_seen=last.at,
        last_event=last.fields["event_id"],
        last_job=last.fields["trace_id"],
        last_error=None if error is None else error[:500],
    )


def _told(event: Happened, *names: str) -> str | None:
    """The first of these that the event says something under."""
    return next((str(event.body[name]) for name in names if event.body.get(name) is not None), None)
