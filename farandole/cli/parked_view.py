"""What parked records look like in a terminal, and as JSON."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from farandole.cli.console import cell, duration, grid, table
from farandole.cli.views import at
from farandole.safetext import clean

if TYPE_CHECKING:
    from farandole.parked import Count, ParkedRecord
    from farandole.projector.rows import Parked

#: Bytes of a key or a header, and of a value, that a terminal is shown.
PREVIEW, DUMP = 200, 256

#: What a person can do about a cause; `show` says it where the record is no event today either.
ADVICE = {
    "empty": "a record without a value is no event; find out who writes it, then discard it",
    "undecodable": "no schema makes an event of these bytes; if their writer is yours, mend it and send the event again,"
    " then discard this record",
    "unknown_schema": "have its schema published (`farandole schemas publish` where the writer is at home), or set"
    " SCHEMA_REGISTRY_URL to the registry that gave the id; then `farandole parked retry --cause unknown_schema`",
    "invalid": "what it says of itself is wrong, and stays so; mend the writer and send the event again, then discard this"
    " record",
    "refused": "it is an event, and the database refused it: mend what the error names, then retry",
}


def counts_table(counts: Sequence[Count]) -> RenderableType:
    """One line a topic and cause."""
    now = datetime.now(UTC)
    view = table("topic", "cause", "records", "discarded", "oldest", "newest")
    for column in view.columns[2:]:
        column.justify = "right"
    for one in counts:
        ages = (cell(duration(now - moment), "dim") for moment in (one.oldest, one.newest))
        view.add_row(
            cell(one.topic), cell(one.cause, "magenta"), cell(f"{one.records:,}"), cell(one.discarded or ""), *ages
        )
    return Group(view, Text())


def lines(records: Sequence[ParkedRecord]) -> list[Text]:
    """Two lines a record: where it lies and what became of it, and its error."""
    now = datetime.now(UTC)
    head = ("record", "cause", "parked", "job", "became")
    found = [
        (one.place, one.cause, duration(now - one.parked_at), str(one.trace_id), _became(one, now)) for one in records
    ]
    widths = [max(map(len, column)) for column in zip(head, *found, strict=True)]
    shown = [Text(_columns(head, widths), "bold")]
    for one, row in zip(records, found, strict=True):
        shown += [Text(_columns(row, widths)), Text(f"  {clean(one.error)}", "dim")]
    return shown


def panel(one: ParkedRecord, today: Parked | str | None) -> RenderableType:
    """Everything about a record; `today` is what keeps it from being an event now, a text where that is not known."""
    value = one.value or b""
    head = grid(
        ("record", one.place),
        ("cause", one.cause),
        ("error", one.error),
        ("parked", at(one.parked_at)),
        ("tried again", one.retried_at and at(one.retried_at)),
        ("discarded", one.discarded_at and f"{at(one.discarded_at)}: {one.reason}"),
        ("seems of job", one.trace_id),
        ("what to do", advice(one, today)),
    )
    raw = grid(
        ("timestamp", at(stamp) if (stamp := _stamp(one)) else one.timestamp_ms),
        ("key", text(one.key)),
        *((f"header {name}", "null" if content is None else text(content)) for name, content in one.headers),
        ("value", "null" if one.value is None else f"{len(value):,} bytes"),
    )
    return Group(head, Text(), raw, *(Text(f"  {line}") for line in dump(value)), Text())


def as_row(one: ParkedRecord, **more: Any) -> dict[str, Any]:
    """For JSON; bytes as text where they are text, else as hex behind 0x."""
    return {
        "topic": one.topic,
        "partition": one.partition,
        "offset": one.offset,
        "timestamp": _stamp(one) or one.timestamp_ms,
        "trace_id": one.trace_id,
        "cause": one.cause,
        "error": one.error,
        "parked_at": one.parked_at,
        "retried_at": one.retried_at,
        "discarded_at": one.discarded_at,
        "reason": one.reason,
        "key": text(one.key),
        "headers": [[name, text(content)] for name, content in one.headers],
        "bytes": None if one.value is None else len(one.value),
    } | more


def whole(one: ParkedRecord, today: Parked | str | None) -> dict[str, Any]:
    """For JSON, everything: the value too, in base64."""
    value = None if one.value is None else b64encode(one.value).decode()
    return as_row(one, value_base64=value, what_to_do=advice(one, today))


def advice(one: ParkedRecord, today: Parked | str | None) -> str:
    """What a person can do about the record."""
    if isinstance(today, str):
        return f"{ADVICE.get(one.cause, '')} (whether it can be read today is not known: {today})".lstrip()
    if today is None and one.cause == "refused":
        return ADVICE["refused"]
    if today is None:
        return f"it can be read today: `farandole parked retry {one.place}`"
    return ADVICE.get(today.cause, f"today it is {today.cause}: {today.error}")


def dump(value: bytes) -> list[str]:
    """The beginning of a value: as it is where that is text, else its bytes in hex, and as ASCII beside.

    >>> dump(b"\\x00\\x01ab")
    ['0000  00 01 61 62                                      ..ab']
    """
    shown, more = value[:DUMP], len(value) - DUMP
    rest = [f"… and {more:,} bytes more"] if more > 0 else []
    try:
        readable = shown.decode()
    except UnicodeDecodeError:
        readable = "\0"
    if all(letter.isprintable() or letter in "\n\t" for letter in readable):
        return [*map(clean, readable.splitlines()), *rest]
    pieces = [(start, shown[start : start + 16]) for start in range(0, len(shown), 16)]
    return [f"{start:04x}  {piece.hex(' '):<47}  {_ascii(piece)}" for start, piece in pieces] + rest


def text(content: bytes | None) -> str | None:
    """Text where it is text, else hex behind 0x; the beginning of what is long."""
    if content is None:
        return None
    shown, more = content[:PREVIEW], "…" if len(content) > PREVIEW else ""
    try:
        return shown.decode() + more
    except UnicodeDecodeError:
        return f"0x{shown.hex()}{more}"


def _became(one: ParkedRecord, now: datetime) -> str:
    if one.discarded_at:
        return f"discarded {duration(now - one.discarded_at)} ago: {one.reason}"
    return f"tried again {duration(now - one.retried_at)} ago" if one.retried_at else ""


def _stamp(one: ParkedRecord) -> datetime | None:
    try:
        return datetime.fromtimestamp(one.timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # Kafka takes any number
        return None


def _columns(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(clean(one).ljust(width) for one, width in zip(row, widths, strict=True)).rstrip()


def _ascii(piece: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
