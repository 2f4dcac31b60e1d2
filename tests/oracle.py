"""What the tables must hold, computed in plain Python from the events: written without a look at the SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
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
    payload: dict[str, Any] | None = None  #: what `data` shows of it

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
            found[event.stage] = event.payload
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
