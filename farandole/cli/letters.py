"""What dead letters look like in a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from farandole.cli.console import as_json, cell, duration, grid, table
from farandole.cli.views import at
from farandole.safetext import clean

if TYPE_CHECKING:
    from farandole.dead import Count, Letter
    from farandole.dead_letter import DeadLetter
    from farandole.kafka import Record

#: Bytes of a value that is no event, or of a header, that are shown.
PREVIEW = 512


def counts_table(counts: Sequence[Count]) -> RenderableType:
    """One line an agent and cause, and the sum."""
    now = datetime.now(UTC)
    view = table("agent", "cause", "letters", "oldest", "newest")
    for index in (2, 3, 4):
        view.columns[index].justify = "right"
    for one in counts:
        ages = (cell(duration(now - moment), "dim") for moment in (one.oldest, one.newest))
        view.add_row(cell(one.agent), cell(one.cause, "magenta"), cell(one.letters), *ages)
    return Group(view, Text())


def counts_of(letters: Sequence[Letter]) -> RenderableType:
    """The same, of letters in hand."""
    from farandole.dead import Count

    groups: dict[tuple[str, str], list[datetime]] = {}
    for letter in letters:
        groups.setdefault((letter.agent, letter.cause), []).append(letter.logged_at)
    return counts_table([Count(*key, len(when), min(when), max(when)) for key, when in sorted(groups.items())])


def lines(letters: Sequence[Letter]) -> list[Text]:
    """Two lines a letter: where it stands, and its error."""
    now = datetime.now(UTC)
    head = ("job", "agent", "cause", "tries", "run", "age", "origin", "became")
    rows = [
        (
            str(letter.trace_id),
            letter.agent,
            letter.cause,
            str(letter.attempts),
            str(letter.run),
            duration(now - letter.logged_at),
            origin(letter),
            letter.answer or "",
        )
        for letter in letters
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    found = [Text(_columns(head, widths), "bold")]
    for letter, row in zip(letters, rows, strict=True):
        found += [Text(_columns(row, widths)), Text(f"  {clean(letter.error)}", "dim")]
    return found


def _columns(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(clean(text).ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def origin(letter: Letter) -> str:
    """Where the record lay at first: topic, partition, offset."""
    return f"{letter.origin_topic}/{letter.origin_partition}@{letter.origin_offset}"


def as_row(
    letter: Letter, record: Record | None, told: DeadLetter | None, event: dict[str, Any] | str | None
) -> dict[str, Any]:
    """Everything about a letter, as it can be printed; the raw parts are None when its record is gone."""
    row = asdict(letter)
    if record is None or told is None:
        return row | {"record": None}
    value = record.value or b""
    return row | {
        "record": {
            "key": _text(record.key),
            "headers": [[name, _text(content)] for name, content in record.headers],
            "bytes": told.cut_from_bytes or len(value),
            "cut": told.cut_from_bytes is not None,
            "event": event if isinstance(event, dict) else None,
            "no_event": event if isinstance(event, str) else None,
            "value": None if isinstance(event, dict) else _text(value),
            "dead_letter_offset": record.offset,
            "origin_timestamp": datetime.fromtimestamp(told.origin.timestamp_ms / 1000, UTC),
            "last_error": told.last_error,
        }
    }


def panel(row: dict[str, Any]) -> RenderableType:
    """The same for people."""
    record = row["record"]
    head = grid(
        ("letter", row["event_id"]),
        ("job", row["trace_id"]),
        ("agent", f"{row['agent']}, run {row['run']}, {row['attempts']} attempts"),
        ("cause", row["cause"]),
        ("error", row["error"]),
        ("last error", record and record["last_error"] != row["error"] and record["last_error"]),
        ("when", at(row["logged_at"])),
        ("origin", f"{row['origin_topic']}/{row['origin_partition']}@{row['origin_offset']}"),
        ("became", row["answer"] and f"{row['answer']} {at(row['answered_at'])} {row['reason'] or ''}"),
    )
    if record is None:
        return Group(head, cell(f"the record is gone from {row['dead_letter_topic']}", "yellow"), Text())
    size = f"{record['bytes']:,}" + (", of which the letter holds a part" if record["cut"] else "")
    raw = grid(
        ("lies at", f"{row['dead_letter_topic']}@{record['dead_letter_offset']}"),
        ("key", record["key"]),
        *((f"header {name}", content) for name, content in record["headers"]),
        ("bytes", size),
        ("no event", row["error"] not in (record["no_event"] or row["error"]) and record["no_event"]),
        ("value", record["value"]),
    )
    fields = grid(*((f"  {name}", _json(value)) for name, value in (record["event"] or {}).items()))
    return Group(head, Text(), cell("record", "bold cyan"), raw, fields, Text())


def _json(value: object) -> str:
    return value if isinstance(value, str) else as_json(value)


def _text(content: bytes | None) -> str | None:
    """Text where it is text, else hex behind 0x."""
    if content is None:
        return None
    shown = content[:PREVIEW]
    more = "…" if len(content) > PREVIEW else ""
    try:
        return shown.decode() + more
    except UnicodeDecodeError:
        return f"0x{shown.hex()}{more}"


__all__ = ["as_row", "counts_of", "counts_table", "lines", "origin", "panel"]
