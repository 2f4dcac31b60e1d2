"""When a response says to come again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from farandole.errors import LONGEST

#: What a limit's headers begin with; a limit with nothing left says when it is full again.
_LIMIT = "anthropic-ratelimit-"


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds from `now`; None where nothing is said. Names are in lower case. Without `now`, a time that is told counts
    from the response's own `date`: the clock here may be another one.

    >>> retry_after({"retry-after": "171"})
    171.0
    """
    now = now or _time(headers.get("date", "")) or datetime.now(UTC)
    told = headers.get("retry-after")
    if told is not None and (seconds := _seconds(told, now)) is not None:
        return seconds
    empty = [name.removesuffix("remaining") for name, left in headers.items() if _is_empty(name, left)]
    waits = [_seconds(headers[f"{name}reset"], now) for name in empty if f"{name}reset" in headers]
    return max((wait for wait in waits if wait is not None), default=None)


def _is_empty(name: str, left: str) -> bool:
    return name.startswith(_LIMIT) and name.endswith("-remaining") and left.strip() == "0"


def _seconds(text: str, now: datetime) -> float | None:
    """Of a number, an HTTP date or an RFC 3339 time."""
    try:
        seconds = float(text)
    except ValueError:
        at = _time(text)
        return min(max((at - now).total_seconds(), 0.0), LONGEST) if at else None
    return min(seconds, LONGEST) if seconds >= 0 else None  # "nan" is neither


def _time(text: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            at = read(text)
        except ValueError:
            continue
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    return None
