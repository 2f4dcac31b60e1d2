"""Months and years, UTC, as ranges of ids: the id of a job without a key begins with milliseconds; its events copy that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

#: From here on ids are hashes rather than times; the partition of the far future begins here.
FAR = datetime(2100, 1, 1, tzinfo=UTC)

_NAME = re.compile(r"event_log_(\d{4})(?:_(\d{2}))?").fullmatch


def least_id(at: datetime) -> UUID:
    """The least id of a moment.

    >>> least_id(datetime(2026, 11, 1, tzinfo=UTC))
    UUID('01a19467-e800-0000-0000-000000000000')
    """
    return UUID(int=int(at.timestamp() * 1000) << 80)


@dataclass(frozen=True, slots=True)
class Period:
    """A month of the calendar, or a whole year."""

    year: int
    month: int | None = None  #: 1 to 12; None: all of them

    @classmethod
    def of(cls, at: datetime, *, monthly: bool) -> Period:
        moment = at.astimezone(UTC)
        return cls(moment.year, moment.month if monthly else None)

    @classmethod
    def named(cls, partition: str) -> Period | None:
        """What a partition of the event log is for; None for the past, the far future and the default one.

        >>> Period.named("event_log_2026_11"), Period.named("event_log_2026"), Period.named("event_log_far")
        (Period(year=2026, month=11), Period(year=2026, month=None), None)
        """
        match = _NAME(partition)
        return cls(int(match[1]), int(match[2]) if match[2] else None) if match else None

    @property
    def next(self) -> Period:
        if self.month is None:
            return Period(self.year + 1)
        return Period(self.year + self.month // 12, self.month % 12 + 1)

    @property
    def start(self) -> datetime:
        return datetime(self.year, self.month or 1, 1, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        """The first moment after it."""
        return self.next.start

    @property
    def partition(self) -> str:
        return f"event_log_{self.year:04}" + (f"_{self.month:02}" if self.month else "")
