"""What the terminal is given: harmless data, tables, JSON. Results go to stdout, what is said beside them to stderr."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from farandole.safetext import clean, clean_json

#: Columns. Where there is no terminal, tables are as wide as they need.
NO_TERMINAL_WIDTH = 160

STATUS_STYLES = {"done": "green", "failed": "red", "blocked": "magenta", "running": "cyan", "waiting": "yellow"}


def cell(value: object, style: str = "") -> Text:
    """One cell of a table: data, never markup."""
    return Text("-" if value is None else clean(value), style=style)


def table(*columns: str, **options: Any) -> Table:
    """A table of the house's style."""
    made = Table(box=None, header_style="bold", pad_edge=False, **options)
    for column in columns:
        made.add_column(column)
    return made


def grid(*rows: tuple[str, object]) -> Table:
    """Names and values; without those that have none."""
    made = Table.grid(padding=(0, 2))
    for name, value in rows:
        if value not in (None, "", False):
            made.add_row(cell(name, "dim"), cell(value))
    return made


def screen(file: IO[str] | None = None) -> Console:
    """The console for results (stdout) or, given stderr, for what is said beside them."""
    console = Console(file=file or sys.stdout, highlight=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in console._environ:
        console.width = NO_TERMINAL_WIDTH
    return console


def show(renderable: Any) -> None:
    """Print a result."""
    screen().print(renderable)


def say(text: str, style: str = "") -> None:
    """Print one line of a result."""
    screen().print(Text(clean(text), style=style), soft_wrap=True)


def note(text: str, style: str = "") -> None:
    """Tell the person at the terminal; never part of what a pipe gets."""
    screen(sys.stderr).print(Text(clean(text), style=style), soft_wrap=True)


def complain(text: str) -> None:
    """One red line on stderr."""
    note(f"error: {text}", "bold red")


def show_json(value: Any) -> None:
    """Print one JSON value, indented."""
    sys.stdout.write(as_json(value, indent=2) + "\n")


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON that is safe to look at: what a terminal would obey is escaped; ids and the like are strings.

    >>> from datetime import UTC
    >>> as_json([datetime(2026, 3, 9, 10, 0, tzinfo=UTC), timedelta(minutes=1.5)])
    '["2026-03-09T10:00:00+00:00", 90.0]'
    """
    return clean_json(json.dumps(value, indent=indent, ensure_ascii=False, default=_plain))


def _plain(value: object) -> str | float:
    """What JSON has no word for: a time as ISO 8601, a span in seconds."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.isoformat() if isinstance(value, datetime) else str(value)


def duration(seconds: float | timedelta | None) -> str:
    """A time span at a glance.

    >>> [duration(x) for x in (None, 0.0042, 0.25, 12.34, 95, 7300)]
    ['-', '4 ms', '250 ms', '12.3 s', '1 m 35 s', '2 h 01 m']
    """
    if seconds is None:
        return "-"
    value = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"
