"""Dead letters as records: the record as it was, on `<agent>.dead`, with headers of our own that say what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from farandole.envelope import Coordinates, number_of, place_of
from farandole.kafka import Headers, Record

#: What the names of a dead letter's own headers begin with.
PREFIX = "farandole.dead."

#: Characters of an error; what a person needs is at its beginning.
ERROR = 2000


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What is told beside the record. `cause` and `error` are the first ones, `attempts` those of all handlings of a run."""

    event_id: str  #: of the JobDeadLettered event that was written with it; "" in letters that do not say
    agent: str
    cause: str
    error: str
    last_error: str
    attempts: int
    origin: Coordinates  #: where the record lay, before any wake; topic without the namespace
    run: int
    at: int  #: milliseconds since 1970, the worker's clock
    cut_from_bytes: int | None = None  #: the whole value's size, where record and headers did not fit and were cut

    def headers(self) -> Headers:
        """The headers that carry it."""
        place = self.origin
        found = {
            "agent": self.agent,
            "cause": self.cause,
            "error": clean(self.error),
            "last_error": clean(self.last_error),
            "attempts": self.attempts,
            "topic": place.topic,
            "partition": place.partition,
            "offset": place.offset,
            "timestamp": place.timestamp_ms,
            "run": self.run,
            "at": self.at,
            "event_id": self.event_id,
            "cut_from_bytes": self.cut_from_bytes,
        }
        return [(PREFIX + name, str(value).encode()) for name, value in found.items() if value is not None]

    def fitted(self, key: bytes | None, value: bytes | None, headers: Headers, most: int) -> Made:
        """Key, value and headers of the dead letter, in at most `most` bytes.

        Only on a topic whose limit was raised a record may not fit: then its headers go, and as much of its value (or
        even its key) as must. `origin` says where the whole record lies.
        """
        whole = (key, value, [*headers, *self.headers()])
        if size(*whole) <= most:
            return whole
        told = replace(self, cut_from_bytes=len(value or b"")).headers()
        room = most - size(None, None, told)
        key = key and key[:room]
        return key, (value or b"")[: room - len(key or b"")], told


Made = tuple[bytes | None, bytes | None, Headers]


def unwrap(record: Record) -> tuple[Record, DeadLetter | None]:
    """The record with the headers it had at first, and what is told of it; None where this is no dead letter.

    The record still lies where the dead letter does.
    """
    own = {name: value or b"" for name, value in record.headers if name.startswith(PREFIX)}
    try:
        text = {name.removeprefix(PREFIX): value.decode() for name, value in own.items()}
        at = place_of(text)
        cut = number_of(text, "cut_from_bytes") if "cut_from_bytes" in text else None
        told = DeadLetter(
            text.get("event_id", ""),
            text["agent"],
            text["cause"],
            text["error"],
            text.get("last_error", ""),
            number_of(text, "attempts"),
            at,
            number_of(text, "run"),
            int(text["at"]),
            cut,
        )
    except (KeyError, ValueError):
        return record, None
    return replace(record, headers=plain(record.headers)), told


def plain(headers: Headers) -> Headers:
    """Without those of a dead letter."""
    return [header for header in headers if not header[0].startswith(PREFIX)]


def clean(text: str) -> str:
    """Bounded, and without the lone surrogates that an error may quote and UTF-8 has no form for."""
    return text.encode("utf-8", "backslashreplace").decode()[:ERROR]


def size(key: bytes | str | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> int:
    """Bytes on the log, at most: key, value and headers, with the frames of the record and of a batch that holds it alone."""
    return (
        len(key.encode() if isinstance(key, str) else key or b"")
        + len(value or b"")
        + sum(len(name.encode()) + len(content or b"") + 10 for name, content in headers)
        + 128
    )
