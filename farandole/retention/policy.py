"""The policy in the database: how long jobs are kept, and what came of it so far."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from farandole.errors import ExitCode, FarandoleError
from farandole.postgres import Connection, Jsonb

FOREVER = "forever"


@dataclass(frozen=True, slots=True)
class Held:
    """Jobs that are past the policy and have not ended: they stay, and so does the partition of their ids."""

    partition: str
    jobs: int
    some: list[str]  #: ids, those that stand still longest first


@dataclass(frozen=True, slots=True)
class Policy:
    """How long jobs are kept after their last event, and what was forgotten by that."""

    keep: timedelta | None  #: None: for ever
    jobs: int  #: forgotten so far
    events: int
    looked_at: datetime | None  #: when it was last carried out
    held: list[Held]

    @property
    def words(self) -> str:
        """The policy as one types it: `90d` or `forever`."""
        return FOREVER if self.keep is None else f"{self.keep.days}d"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON. The names are part of the interface."""
        return {
            "keep": self.words,
            "forgotten": {"jobs": self.jobs, "events": self.events},
            "looked_at": self.looked_at,
            "held": [asdict(one) for one in self.held],
        }


def parse(text: str) -> timedelta | None:
    """Days as people write them; None is for ever. Raises FarandoleError for anything else, and for less than a day.

    >>> parse("90d"), parse("forever")
    (datetime.timedelta(days=90), None)
    """
    if text == FOREVER:
        return None
    match = re.fullmatch(r"([1-9]\d{0,4})d", text)
    if not match:
        raise FarandoleError(f"retain {text}: expected days, at least one, such as 90d; or {FOREVER}", ExitCode.USAGE)
    return timedelta(days=int(match[1]))


def read(connection: Connection[Any]) -> Policy:
    row = connection.execute("SELECT keep, jobs, events, looked_at, held FROM retention").fetchone()
    if row is None:
        return Policy(None, 0, 0, None, [])
    keep, jobs, events, looked_at, held = row
    return Policy(keep, jobs, events, looked_at, [Held(**one) for one in held])


def store(connection: Connection[Any], keep: timedelta | None) -> None:
    """Decide how long jobs are kept. What holds partitions up is found when it is carried out."""
    connection.execute("UPDATE retention SET keep = %s, held = '[]'", (keep,))


def looked(connection: Connection[Any], at: datetime, held: Sequence[Held]) -> None:
    """Keep what was found when the policy was carried out."""
    found = Jsonb([asdict(one) for one in held])
    connection.execute("UPDATE retention SET looked_at = %s, held = %s", (at, found))


def forgot_anything(connection: Connection[Any]) -> bool:
    """Whether any job was ever forgotten, so that event_log does not hold everything that was folded."""
    row = connection.execute("SELECT horizon > '-infinity' FROM retention").fetchone()
    return bool(row and row[0])
