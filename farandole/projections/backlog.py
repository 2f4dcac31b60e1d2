"""The events that came since a build began: folded in pieces, each once."""

from __future__ import annotations

from typing import Any

from farandole.postgres import Connection, sql
from farandole.projections.beside import Beside
from farandole.projections.folders import Projection
from farandole.projections.statements import apply


def fold(connection: Connection[Any], beside: Beside, projection: Projection, size: int) -> int:
    """Fold at most `size` of them, in the caller's transaction; returns how many there were."""
    beside.look_here()
    connection.execute("DROP TABLE IF EXISTS pg_temp.piece CASCADE")
    taken = sql.SQL("CREATE TEMP TABLE piece AS SELECT event_id FROM projection_backlog WHERE name = {} LIMIT {}")
    connection.execute(taken.format(sql.Literal(projection.name), sql.Literal(size)))
    row = connection.execute("SELECT count(*) FROM pg_temp.piece").fetchone()
    count: int = row[0] if row else 0
    if count:
        beside.over("SELECT event_log.* FROM event_log JOIN pg_temp.piece USING (event_id)")
        apply(connection, projection, "fold.sql")
        connection.execute(
            "DELETE FROM projection_backlog USING pg_temp.piece"
            " WHERE projection_backlog.name = %s AND projection_backlog.event_id = piece.event_id",
            (projection.name,),
        )
        connection.execute(
            "UPDATE projection_build SET folded = folded + %s, moved_at = now() WHERE name = %s",
            (count, projection.name),
        )
    return count
