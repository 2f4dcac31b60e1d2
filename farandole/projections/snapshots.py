"""Readers whose snapshots are older than what was folded: to them new tables lack rows, or seem empty."""

from __future__ import annotations

from typing import Any

from farandole.postgres import Connection
from farandole.projections.statements import SQL

#: A time by the server's clock, and the transaction id that was the next one then.
Moment = dict[str, Any]


def now(connection: Connection[Any]) -> Moment:
    row = connection.execute("SELECT clock_timestamp(), pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
    if row is None:
        raise RuntimeError("the server knows no time")
    return {"moment": row[0], "next": row[1]}


def before(connection: Connection[Any], moment: Moment) -> str | None:
    """Who sees the database as it was before `moment`, in words: the one that does so longest."""
    row = connection.execute(SQL["old_snapshots"], moment).fetchone()
    if row is None:
        return None
    pid, application, since = row
    return f"process {pid} ({application}), in a transaction {f'since {since}' if since else 'of another role'}"
