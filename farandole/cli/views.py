"""What a job and its journey look like in a terminal of 100 columns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farandole.cli.console import STATUS_STYLES, cell, duration, table
from farandole.models.configured import dollars
from farandole.safetext import clean

if TYPE_CHECKING:
    from farandole.parked import ParkedRecord
    from farandole.reading import Job, JourneyRow, Wait

#: Characters of a payload's value in a line; the whole is in `--json`.
VALUE = 200


def jobs_table(jobs: Sequence[Job], total: Sequence[Job] | None = None) -> RenderableType:
    """One line a job, and a line of counts below: of all in `total`, where `jobs` are only some of them."""
    if not jobs:
        return cell("no jobs", "dim")
    now = datetime.now(UTC)
    view = table("job", "stage", "status", "age", "idle", "events", "retries", "tenant")
    for column in view.columns[3:7]:
        column.justify = "right"
    view.columns[0].no_wrap = True
    for job in jobs:
        view.add_row(
            cell(job.trace_id),
            cell(job.stage),
            status(job),
            cell(duration(now - job.created_at)),
            cell(duration(now - job.updated_at)),
            cell(job.events),
            cell(retries(job)),
            cell(job.tenant),
        )
    more = len(total or jobs) - len(jobs)
    return Group(view, cell(f"… and {more} more" if more else "", "dim"), counts(total or jobs))


def counts(jobs: Sequence[Job]) -> Text:
    """How many stand how: `38 done · 2 failed`."""
    found = Counter(job.status for job in jobs)
    parts = [Text(f"{number} {name}", style=STATUS_STYLES.get(name, "")) for name, number in found.most_common()]
    return Text(" · ").join(parts)


def retries(job: Job) -> int:
    """How often a handler had to be run again; `attempts` counts the first runs as well, one an event."""
    return max(0, job.attempts - job.events)


def status(job: Job) -> Text:
    """The status in its colour, with what a person should know beside it."""
    text = cell(job.status, STATUS_STYLES.get(job.status, ""))
    if job.parked:
        text.append(f" ({job.parked} parked)", "yellow")
    return text


def job_panel(
    job: Job, stages: Sequence[str | None], waits: Sequence[Wait] = (), parked: Sequence[ParkedRecord] = ()
) -> RenderableType:
    """Everything about one job, stage by stage; `stages` is the order in which it met them."""
    head = Table.grid(padding=(0, 2))
    for name, value in (
        ("job", cell(job.trace_id, "bold")),
        ("status", status(job)),
        ("stage", cell(job.stage)),
        ("tenant", cell(job.tenant)),
        ("created", cell(at(job.created_at))),
        ("updated", cell(at(job.updated_at))),
        ("events", cell(f"{job.events}, {retries(job)} retries, {job.dead_letters} dead letters, run {job.run}")),
    ):
        head.add_row(Text(name, "dim"), value)
    if job.calls:
        head.add_row(Text("models", "dim"), cell(spent(job)))
    if job.conflicts:
        head.add_row(Text("conflicts", "dim"), cell(job.conflicts, "yellow"))
    for wait in waits:
        head.add_row(Text("waits", "dim"), _wait(wait))
    for one in parked:
        head.add_row(Text("parked", "dim"), _parked(one))
    parts: list[RenderableType] = [head]
    data = job.data or {}
    for stage in dict.fromkeys([*stages, *data]):
        if stage in data:
            parts += [Text(), cell(stage, "bold cyan"), _fields(data[stage])]
    return Group(*parts)


def timeline(
    job: Job,
    rows: Sequence[JourneyRow],
    width: int,
    waits: Sequence[Wait] = (),
    parked: Sequence[ParkedRecord] = (),
) -> RenderableType:
    """The journey from top to bottom; the bar shows when, within the whole, each event came to be."""
    whole = max((row.since_start for row in rows), default=None)
    view = table("at", "stage", "agent", "waited", "worked", "try", "when", "event")
    for index in (0, 3, 4, 5):
        view.columns[index].justify = "right"
    bar = max(8, min(30, width - 78))
    for row in rows:
        view.add_row(*_cells(row, whole, bar))
    total = f"{len(rows)} events in {duration(whole)}" if rows else "no events"
    head = Text.assemble(cell(job.trace_id, "bold"), "  ", status(job), ("  " + total, "dim"))
    parts: list[RenderableType] = [head, Text(), view]
    if reasons := [
        cell(f"{row.emitted_by}: {told}", STATUS_STYLES[row.outcome or ""]) for row in rows if (told := _reason(row))
    ]:
        parts += [Text(), *reasons]
    if waits:
        parts += [Text(), *(_wait(wait) for wait in waits)]
    if parked:
        parts += [Text(), *(Text.assemble("parked ", _parked(one), style="yellow") for one in parked)]
    if decided := deciders(rows):
        parts += [Text(), cell(f"decided by {', '.join(decided)}", "dim")]
    if job.calls:
        parts += [cell(spent(job), "dim")]
    return Group(*parts)


def _cells(row: JourneyRow, whole: timedelta | None, bar: int) -> list[Text]:
    style = STATUS_STYLES.get(row.outcome or "", "cyan")
    return [
        cell(f"+{duration(row.since_start)}", "dim"),
        cell(row.stage or row.outcome, f"bold {style}"),
        cell(row.emitted_by),
        cell(duration(row.waited), "dim"),
        cell(duration(row.worked)),
        cell(row.attempt, "yellow" if row.attempt > 1 else "dim"),
        _bar(row, whole, bar, style),
        cell(_event(row), "dim"),
    ]


def spent(job: Job) -> str:
    """What its model calls cost: `3 model calls, 4,120 tokens, $0.0031`."""
    calls = f"{job.calls} model call{'s' * (job.calls != 1)}"
    return f"{calls}, {job.tokens:,} tokens, {dollars(job.cost_micro_dollars)}"


def deciders(rows: Sequence[JourneyRow]) -> list[str]:
    """Who decided along the way, as the events themselves say (`decided_by`)."""
    return list(dict.fromkeys(str(row.body["decided_by"]) for row in rows if row.body and row.body.get("decided_by")))


def at(moment: datetime) -> str:
    """In the reader's own time zone, to the second."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def _wait(wait: Wait) -> Text:
    """What is waited for: `classify after attempt 2: due 2026-01-31 12:00:00 UTC, in 4m 10s (ConnectionError: …)`."""
    if wait.kind == "behind":
        return cell(f"{wait.agent}: behind an earlier event of its key", "yellow")
    if wait.kind == "budget" and wait.due is not None:
        return cell(f"{wait.agent}: until {at(wait.due)} ({wait.error[:VALUE]})", "yellow")
    until = "woken, about to be handled"
    if wait.woken_at is None and wait.due is not None:
        left = wait.due - datetime.now(UTC)
        when = f"in {duration(left)}" if left.total_seconds() > 0 else f"{duration(-left)} ago"
        until = f"due {at(wait.due)}, {when}"
    return cell(f"{wait.agent} after attempt {wait.attempts}: {until} ({wait.error[:VALUE]})", "yellow")


def _parked(one: ParkedRecord) -> Text:
    """A record that is no event and seems to belong here: `jobs.done/0@17: undecodable (not a jobs.Done: …)`."""
    return cell(f"{one.place}: {one.cause} ({one.error[:VALUE]})", "yellow")


def _event(row: JourneyRow) -> str:
    name = row.type.rsplit(".", 1)[-1]
    part = f" {row.part + 1}/{row.parts}" if row.part is not None and row.parts else ""
    return f"{name}{part}" + (f" run {row.run}" if row.run else "")


def _reason(row: JourneyRow) -> str:
    """Why it failed or is blocked, where the event says so."""
    if row.outcome not in ("failed", "blocked") or not row.body:
        return ""
    words = [row.body.get(name) for name in ("reason", "cause", "detail", "error")]
    return ": ".join(str(word) for word in words if word)[:VALUE]


def _bar(row: JourneyRow, whole: Any, width: int, style: str) -> Text:
    """`·····──━━●`: from its cause to itself, first waiting, then working."""
    scale = (width - 1) / whole.total_seconds() if whole else 0
    end = round(row.since_start.total_seconds() * scale)
    start = max(0, end - round(row.took.total_seconds() * scale)) if row.took else end
    claimed = min(end, max(start, end - round(row.worked.total_seconds() * scale))) if row.worked else start
    return Text.assemble(
        ("·" * start, "dim"), ("─" * (claimed - start), "dim"), ("━" * (end - claimed), style), ("●", style)
    )


def _fields(body: Any) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, value in body.items() if isinstance(body, dict) else [("", body)]:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        shown = clean(text)
        grid.add_row(cell(f"  {name}", "dim"), Text(shown if len(shown) <= VALUE else shown[:VALUE] + "…"))
    return grid
