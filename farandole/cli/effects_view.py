"""What effects look like in a terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farandole.cli.console import as_json, cell, duration, table
from farandole.cli.views import at
from farandole.safetext import clean

if TYPE_CHECKING:
    from farandole.steps.listing import Effect, ModelCall

_STYLES = {"held": "magenta", "leased": "cyan", "failed": "red", "done": "green", "forgotten": "yellow"}
_HEAD = ("job", "agent", "step", "state", "begun", "age", "lease")

#: What a list leaves out: large, or of no use without the rest.
_WHOLE = ("result", "trail", "failure", "budgets", "call_id", "model", "reserved", "looked_at")


def lines(effects: Sequence[Effect]) -> list[Text]:
    """One line an effect, and one for its error."""
    rows = [
        (
            str(one.trace_id),
            clean(one.agent),
            clean(one.name),
            one.state,
            str(one.begun),
            duration(one.looked_at - one.created_at),
            lease(one),
        )
        for one in effects
    ]
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    found = [Text(_columns(_HEAD, widths), "bold")]
    for one, row in zip(effects, rows, strict=True):
        found.append(Text(_columns(row, widths), _STYLES[one.state] if one.state in ("held", "failed") else ""))
        if one.error:
            found.append(Text(f"  {clean(one.error)}", "dim"))
    return found


def _columns(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def lease(one: Effect) -> str:
    """Who is at it: `4f2a….7, 12 s left`."""
    if one.state != "leased" or one.lease_seconds is None:
        return ""
    ended = one.lease_seconds <= 0
    return f"{one.owner}, " + (f"ended {duration(-one.lease_seconds)} ago" if ended else f"{one.lease_seconds:.0f} s left")


def as_row(one: Effect) -> dict[str, Any]:
    """For JSON: an effect of a list, without its result."""
    row = asdict(one) | {"key": one.key, "live": one.live, "age": one.looked_at - one.created_at}
    return {name: value for name, value in row.items() if name not in _WHOLE}


def whole(one: Effect, calls: Sequence[ModelCall]) -> dict[str, Any]:
    """For JSON: everything."""
    row = asdict(one) | {"key": one.key, "live": one.live}
    for name in ("result", "trail", "failure"):
        row[name] = None if row[name] is None else json.loads(row[name])
    return row | {"calls": [asdict(call) for call in calls]}


def panel(one: Effect, calls: Sequence[ModelCall]) -> RenderableType:
    """Everything, for people."""
    unknown = "held for a person" if one.hold else "run again, under the same key"
    reserved = None if one.reserved is None else f"{dollars(one.reserved)} in {', '.join(one.budgets or ['no budget'])}"
    head = _grid(
        ("step", f"{one.name} of {one.agent}"),
        ("job", one.trace_id),
        ("event", one.event_id),
        ("tenant", one.tenant),
        ("state", cell(one.state, _STYLES.get(one.state, ""))),
        ("begun", f"{one.begun} times" + (f", {one.generation} times forgotten" if one.generation else "")),
        ("key", one.key),
        ("lease", lease(one)),
        ("if unknown", unknown),
        ("since", at(one.created_at)),
        ("ended", one.finished_at and at(one.finished_at)),
        ("error", one.error),
        ("failed", one.failure and f"for good in run {one.failed_run}"),
        ("reserved", reserved),
    )
    parts: list[RenderableType] = [head]
    for name, text in (("failure", one.failure), ("result", one.result), ("replies that did not do", one.trail)):
        if text is not None:
            parts += [Text(), cell(name, "bold cyan"), Text(_pretty(text))]
    if calls:
        parts += [Text(), cell("model calls", "bold cyan"), _calls(calls)]
    return Group(*parts, Text())


def _pretty(text: str) -> str:
    try:
        return as_json(json.loads(text), indent=2)
    except ValueError:
        return clean(text)


def _calls(calls: Sequence[ModelCall]) -> Table:
    view = table("ended", "model", "in", "out", "cache read", "cache write", "cost", "took", "outcome", "request")
    for column in view.columns[2:8]:
        column.justify = "right"
    for call in calls:
        tokens = (call.input_tokens, call.output_tokens, call.cache_read_tokens, call.cache_write_tokens)
        stopped = f" ({call.stop_reason})" if call.stop_reason else ""
        view.add_row(
            cell(at(call.at)),
            cell(call.model),
            *(cell(number) for number in tokens),
            cell(dollars(call.micro_dollars)),
            cell(duration(None if call.latency_ms is None else call.latency_ms / 1000)),
            cell(f"{call.outcome}{stopped}"),
            cell(call.request_id, "dim"),
        )
    return view


def dollars(micro: int | None) -> str:
    """Micro-dollars as money.

    >>> dollars(1234), dollars(None)
    ('$0.001234', '-')
    """
    return "-" if micro is None else f"${micro / 1_000_000:.6f}"


def _grid(*rows: tuple[str, object]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, value in rows:
        if value not in (None, ""):
            grid.add_row(cell(name, "dim"), value if isinstance(value, Text) else cell(value))
    return grid
