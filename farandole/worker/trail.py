"""The guard against agents that hand an event round for ever: near the limit, events carry the names of who had them."""

from __future__ import annotations

from farandole.event import Event, JobDeadLettered, JobDiscarded, JobFailed, JobRedriven
from farandole.kafka import Headers
from farandole.outcome import Failed, Skipped

#: The header: agents by name, the latest last, separated by commas.
TRAIL = "farandole.trail"

#: Agents on a trail, and hops before the limit from which on it is written: a loop of this many agents is named whole.
NAMES = 32

#: Hops beyond the limit that word of a failure may still make: who is told of failures is told of this one too.
LAST_WORDS = 8

_WORDS = (JobFailed, JobDeadLettered, JobRedriven, JobDiscarded)


def extended(headers: Headers, hop: int, limit: int, agent: str) -> Headers:
    """The headers of an event of `hop` that `agent` emits, caused by one with `headers`."""
    kept = [header for header in headers if header[0] != TRAIL]
    if hop < limit - NAMES:
        return kept
    return [*kept, (TRAIL, ",".join([*_names(headers), agent][-NAMES:]).encode())]


def ended(headers: Headers, hop: int, limit: int, event: type[Event]) -> Failed | Skipped | None:
    """How an event ends that has come too far; None for one that is to be handled."""
    if issubclass(event, _WORDS):
        return Skipped("loop") if hop >= limit + LAST_WORDS else None
    if hop < limit:
        return None
    names = _names(headers)
    through = f": … → {' → '.join(names)} → …" if names else ""
    return Failed("loop", f"the event has come through {hop} handlings{through}")


def _names(headers: Headers) -> list[str]:
    found = [value for name, value in headers if name == TRAIL]
    return (found[-1] or b"").decode("utf-8", "replace").split(",") if found and found[-1] else []
