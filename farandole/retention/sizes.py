"""How large the event log and the jobs are, and what the policy says of it: what `farandole status` shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from farandole import postgres
from farandole.postgres import Connection
from farandole.retention import policy
from farandole.retention.policy import Policy

_SIZES = postgres.script((Path(__file__).parent / "sql" / "sizes.sql").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Size:
    """One table."""

    table: str
    rows: int | None  #: about as many; None: nobody has counted yet
    table_bytes: int  #: values that lie outside of their rows included
    index_bytes: int


@dataclass(frozen=True, slots=True)
class Storage:
    """What the projection takes up, without users' own tables."""

    partitions: list[Size]  #: of event_log
    job: Size | None
    policy: Policy

    @property
    def event_log(self) -> Size:
        """All partitions together."""
        rows = [one.rows for one in self.partitions if one.rows is not None]
        table = sum(one.table_bytes for one in self.partitions)
        return Size("event_log", sum(rows), table, sum(one.index_bytes for one in self.partitions))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON. The names are part of the interface."""
        return {
            "event_log": asdict(self.event_log) | {"partitions": [asdict(one) for one in self.partitions]},
            "job": asdict(self.job) if self.job else None,
            "retention": self.policy.as_dict(),
        }


def measure(connection: Connection[Any]) -> Storage:
    """Sizes as Postgres keeps them; nothing is counted."""
    rows = connection.execute(_SIZES).fetchall()
    sizes = [(is_job, Size(name, *rest)) for name, is_job, *rest in rows]
    job = next((size for is_job, size in sizes if is_job), None)
    return Storage([size for is_job, size in sizes if not is_job], job, policy.read(connection))
