"""How agents and the projector stand, for people: one row an agent, and a line for each thing there is to say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farandole.cli.console import cell, duration, table
from farandole.cli.storage_view import storage_lines
from farandole.safetext import clean
from farandole.standing import AgentStanding, Lag, ProjectorStanding, Standing

_STYLES = {"running": "green", "draining": "cyan", "no worker": "yellow"}
#: Columns that are numbers.
_NUMBERS = (
    "lag",
    "oldest",
    "woken",
    "in flight",
    "queued",
    "paused",
    "waits",
    "dead",
    "workers",
    "handled/s",
    "members",
)


def standing_view(standing: Standing, now: datetime | None = None, *, closely: bool = False) -> RenderableType:
    """Everything on one screen. `closely` adds workers and partitions."""
    now = now or datetime.now(UTC)
    parts: list[RenderableType] = []
    if standing.agents:
        parts += [_agents(standing.agents), *(line for one in standing.agents for line in _said(one, now))]
    if closely:
        for one in standing.agents:
            parts += [Text(), _workers(one), *_behind(one)]
    else:
        parts += [Text(), *_projector(standing.projector)]
    parts += [_line(f"{what}: {error}", "yellow") for what, error in _missing(standing) if error]
    parts += [_line(note, "dim") for note in standing.notes]
    parts += [_line(f"stands still: {reason}", "bold red") for reason in standing.still]
    return Group(*parts)


def _agents(agents: list[AgentStanding]) -> Table:
    view = _numbers_right(
        table(
            *("agent", "lag", "oldest", "woken", "in flight", "queued", "paused", "waits", "dead", "workers"),
            *("handled/s", "state"),
        )
    )
    for one in agents:
        state = _state(one)
        view.add_row(
            cell(one.agent if one.declared else f"{one.agent} (not in the project)"),
            cell(_records(one.lag)),
            cell(duration(one.lag.seconds if one.lag else None)),
            cell(_records(one.wake_lag)),
            *(cell(one.total(what)) for what in ("in_flight", "queued", "paused")),
            cell(sum(wait.count for wait in one.waits)),
            cell(sum(one.dead_letters.values()), "magenta" if one.dead_letters else ""),
            cell(len(one.alive)),
            cell(f"{one.rates['handled']:.1f}"),
            cell(state, _STYLES.get(state, "bold red")),
        )
    return view


def _state(one: AgentStanding) -> str:
    if one.still:
        return "still"
    states = {worker.state for worker in one.alive}
    return "draining" if states == {"draining"} else "running" if states else "no worker"


def _said(one: AgentStanding, now: datetime) -> Iterator[Text]:
    for wait in one.waits:
        due = f", next in {duration(max(0.0, (wait.next_due - now).total_seconds()))}" if wait.next_due else ""
        more = f", {wait.overdue} overdue" * bool(wait.overdue) + f", {wait.woken} woken" * bool(wait.woken)
        yield _line(f"{one.agent}: waits ({wait.kind}): {wait.count}{due}{more}", "yellow" if wait.overdue else "")
    if one.dead_letters:
        causes = ", ".join(f"{cause} {count}" for cause, count in one.dead_letters.items())
        yield _line(f"{one.agent}: dead letters that are open: {causes}", "magenta")
    if one.last_error:
        at, error = one.last_error
        ago = duration(max(0.0, (now - datetime.fromisoformat(at)).total_seconds()))
        yield _line(f"{one.agent}: last error, {ago} ago: {error}")
    for worker in one.workers:
        if worker.state in ("gone", "stopped"):
            said = any((worker.reason or "") in reason for reason in one.still)  # below, in red
            why = f": {worker.reason}" if worker.reason and not said else ""
            seen = f"last heard of {duration(worker.age)} ago (pid {worker.pid} on {worker.host})"
            yield _line(f"{one.agent}: slot {worker.slot} {worker.state}, {seen}{why}", "yellow")


def _workers(one: AgentStanding) -> Table:
    columns = ("in flight", "queued", "uncommitted", "paused", "held")
    view = _numbers_right(table("slot", "state", "host", "pid", "up", *columns, "handled/s", "emitted/s", "dead/s"))
    for worker in one.workers:
        rates = worker.vitals.get("rates") or {}
        view.add_row(
            cell(worker.slot),
            cell(worker.state, _STYLES.get(worker.state, "bold red")),
            cell(worker.host),
            cell(worker.pid),
            cell(duration(datetime.now(UTC) - worker.started_at)),
            *(cell(worker.vitals.get(name.replace(" ", "_"))) for name in columns),
            *(cell(f"{rates.get(name, 0):.1f}") for name in ("handled", "emitted", "dead_lettered")),
        )
    return view


def _behind(one: AgentStanding) -> Iterator[Text]:
    for lag in (one.lag, one.wake_lag):
        for topic, numbers in (lag.partitions if lag else {}).items():
            yield _line(f"behind on {topic}: " + ", ".join(f"[{number}] {count}" for number, count in numbers.items()))


def _projector(one: ProjectorStanding) -> Iterator[RenderableType]:
    view = _numbers_right(table("projector", "lag", "oldest", "members", "parked"))
    told = "still" if one.still else "-" if one.members is None else "running" if one.members else "no member"
    style = _STYLES.get(told, "bold red" if one.still else "yellow")
    oldest = cell(duration(one.lag.seconds if one.lag else None))
    view.add_row(cell(told, style), cell(_records(one.lag)), oldest, cell(one.members), cell(one.parked))
    yield view
    for topic, numbers in (one.lag.partitions if one.lag else {}).items():
        yield _line(f"projector: behind on {topic} by {sum(numbers.values())}")
    if one.storage:
        yield from (_line(text) for text in storage_lines(one.storage))


def _missing(standing: Standing) -> tuple[tuple[str, str | None], ...]:
    return ("without the broker", standing.broker), ("without the database", standing.database)


def _records(lag: Lag | None) -> int | None:
    return None if lag is None else lag.records


def _numbers_right(view: Table) -> Table:
    for column in view.columns:
        if column.header in (*_NUMBERS, "uncommitted", "held", "emitted/s", "dead/s", "parked"):
            column.justify = "right"
    return view


def _line(text: str, style: str = "") -> Text:
    return Text(clean(text), style=style)
