"""Months, UTC, as ranges of ids: the id of a job without a key begins with milliseconds, and its events copy that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

#: From here on ids are hashes rather than times; the partition of the far future begins here.
FAR = datetime(2100, 1, 1, tzinfo=UTC)

_NAME = re.compile(r"event_log_(\d{4})_(\d{2})").fullmatch


def least_id(at: datetime) -> UUID:
    """The least id of a moment.

    >>> least_id(datetime(2026, 11, 1, tzinfo=UTC))
    UUID('01a19467-e800-0000-0000-000000000000')
    """
    return UUID(int=int(at.timestamp() * 1000) << 80)


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A month of the calendar, UTC."""

    year: int
    number: int  #: 1 to 12

    @classmethod
    def of(cls, at: datetime) -> Month:
        moment = at.astimezone(UTC)
        return cls(moment.year, moment.month)

    @classmethod
    def named(cls, partition: str) -> Month | None:
        """The month that a partition of the event log is for; None for the others.

        >>> Month.named("event_log_2026_11"), Month.named("event_log_far")
        (Month(year=2026, number=11), None)
        """
        match = _NAME(partition)
        return cls(int(match[1]), int(match[2])) if match else None

    @property
    def next(self) -> Month:
        return Month(self.year + self.number // 12, self.number % 12 + 1)

    @property
    def start(self) -> datetime:
        return datetime(self.year, self.number, 1, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        """The first moment after it."""
        return self.next.start

    @property
    def partition(self) -> str:
        return f"event_log_{self.year:04}_{self.number:02}"
