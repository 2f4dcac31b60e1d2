"""Records of jobs that were forgotten, come again: parked, for a part of a job would look like a whole one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from uuid import UUID

from farandole import postgres
from farandole.postgres import Connection
from farandole.projector.rows import Batch, Parked
from farandole.settings import Settings

#: The cause of these parked records.
EXPIRED = "expired"

_LIMITS = postgres.script((Path(__file__).parent / "sql" / "limits.sql").read_text(encoding="utf-8"))
_ALIVE = "SELECT trace_id FROM job WHERE trace_id = ANY (%s) ORDER BY trace_id FOR KEY SHARE"

#: Where a packed row of event_log has its trace_id: behind the number of columns and the event_id, each with its length.
_TRACE_ID = slice(26, 42)


class Expired:
    """Sorts out what a projector reads a second time, after its position was moved back.

    Nothing is asked of the database before that: positions only grow between claims, and what was forgotten lies before.
    """

    def __init__(self, settings: Settings, connection: Connection[Any]) -> None:
        self._settings = settings
        self._connection = connection
        self._stale = True
        self._limits: dict[tuple[str, int], float] = {}  #: by partition, the first offset that was surely not forgotten
        self._horizon = 0.0  #: milliseconds since 1970, by Kafka's clock

    def claimed(self) -> None:
        """Positions may be others than before."""
        self._stale = True

    def sift(self, batch: Batch) -> None:
        """Take the records of forgotten jobs out of the rows, to be parked. In the transaction of the batch."""
        if self._stale:
            self._learn()
        if not self._limits:
            return
        doubtful = {
            number: UUID(bytes=bytes(batch.rows[number][_TRACE_ID]))
            for number, record in enumerate(batch.records)
            if record.timestamp_ms < self._horizon
            and record.offset < self._limits.get((self._settings.bare(record.topic), record.partition), 0)
        }
        if not doubtful:
            return
        alive = {row[0] for row in self._connection.execute(_ALIVE, (list({*doubtful.values()}),)).fetchall()}
        self._park(batch, {number for number, job in doubtful.items() if job not in alive})

    def _park(self, batch: Batch, gone: set[int]) -> None:
        reason = "its job was forgotten by `farandole projector retain`, and this record comes again"
        batch.parked += [Parked(batch.records[number], EXPIRED, reason) for number in sorted(gone)]
        kept = [number for number in range(len(batch.rows)) if number not in gone]
        batch.records[:] = [batch.records[number] for number in kept]
        batch.rows[:] = [batch.rows[number] for number in kept]

    def _learn(self) -> None:
        rows = self._connection.execute(_LIMITS).fetchall()
        self._limits = {(topic, number): math.inf if limit is None else limit for topic, number, limit, _ in rows}
        self._horizon = rows[0][3].timestamp() * 1000 if rows else 0.0
        self._stale = False
