"""Wakes: records on an agent's own `<agent>.wake` topic that bring back a record it has put aside, raw, with what is known.

A wake has the key, value and headers of the record as it was, and headers of its own that say where that record lay and
what has become of it so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from farandole.envelope import Coordinates, number_of, place_of
from farandole.kafka import Headers, Record

#: What the names of a wake's own headers begin with.
PREFIX = "farandole.wake."


@dataclass(frozen=True, slots=True)
class Wake:
    """Why a record comes back.

    `seq` counts the suspensions of this handling; 0 is a redrive, which begins anew under a higher run. `run` replaces
    the one in the envelope. `attempts` were made before; `error` is the first one's.
    """

    origin: Coordinates  #: where the record lay; topic without the namespace
    seq: int
    run: int
    attempts: int = 0
    error: str = ""

    def headers(self) -> Headers:
        """The headers that carry it."""
        at = self.origin
        found = {
            "topic": at.topic,
            "partition": at.partition,
            "offset": at.offset,
            "timestamp": at.timestamp_ms,
            "seq": self.seq,
            "run": self.run,
            "attempts": self.attempts,
            "error": self.error,
        }
        return [(PREFIX + name, str(value).encode("utf-8", "backslashreplace")) for name, value in found.items()]

    @property
    def step(self) -> str:
        """The name of the claim in `step`: each suspension is claimed once, a redrive like a first handling."""
        return f"wake.{self.seq}" if self.seq else ""


def unwrap(record: Record, topic: Callable[[str], str]) -> tuple[Record, Wake | None]:
    """The record as it lay in the log at first, its place included, and the wake; the record itself and None when it does
    not carry the headers of a whole wake. `topic` puts the namespace before a topic's name."""
    try:
        text = {
            name.removeprefix(PREFIX): (value or b"").decode()
            for name, value in record.headers
            if name.startswith(PREFIX)
        }
        at = place_of(text)
        seq, run, attempts = (number_of(text, name) for name in ("seq", "run", "attempts"))
        wake = Wake(at, seq, run, attempts, text["error"])
    except (KeyError, ValueError):
        return record, None
    kept = [header for header in record.headers if not header[0].startswith(PREFIX)]
    return Record(topic(at.topic), at.partition, at.offset, at.timestamp_ms, record.key, record.value, kept), wake
