"""The partitions of the event log: listed, made ahead, dropped; nobody else waits long for their locks."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from farandole.postgres import Connection, psycopg, sql
from farandole.retention.periods import FAR, Period, least_id

log = logging.getLogger("farandole.retention")

T = TypeVar("T")

PAST, DEFAULT = "event_log_past", "event_log_default"

#: So far ahead partitions are made: the next two months. Clocks differ, and no projector may run for weeks.
AHEAD = timedelta(days=62)
#: What waits behind a lock that we wait for waits as long as we do: less than anybody notices.
_BRIEFLY = "SET LOCAL lock_timeout = '300ms'"
#: How often a lock is asked for, and seconds between: a transaction of a projector is through by then.
_TRIES, _PAUSE = 8, 0.5

_LISTED = """
SELECT child.relname, pg_get_expr(child.relpartbound, child.oid)
FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
WHERE inhparent = 'event_log'::regclass
"""
_BOUND = re.compile(r"FROM \((?:MINVALUE|'([^']+)')\) TO \((?:MAXVALUE|'([^']+)')\)").search


@dataclass(frozen=True, slots=True)
class Range:
    """Ids from `low` on to before `high` (None: to the end), and the partition that holds them."""

    partition: str
    low: UUID
    high: UUID | None


def ranges(connection: Connection[Any]) -> list[Range]:
    """Where every id lies, in order: the partitions, and the holes between them that the default one is for."""
    found = []
    for name, expression in connection.execute(_LISTED).fetchall():
        if match := _BOUND(expression):
            found.append(Range(name, UUID(match[1] or "0" * 32), UUID(match[2]) if match[2] else None))
    found.sort(key=lambda one: one.low)
    whole: list[Range] = []
    reached: UUID | None = UUID(int=0)
    for one in found:
        if reached is not None and one.low > reached:
            whole.append(Range(DEFAULT, reached, one.low))
        whole.append(one)
        reached = one.high
    return whole


def make_ahead(connection: Connection[Any], now: datetime, *, monthly: bool) -> list[str]:
    """Make the partitions of now and of what is near; what lies in the default one already moves there with it.

    Months are for dropping them. Where nothing is ever forgotten a year has one partition: each costs every reader a
    little. Returns the names of those that were missing. Raises psycopg's LockNotAvailable when others keep the table busy.
    """
    made = []
    for period in _wanted(now, monthly):
        if any(one.partition == DEFAULT and _within(period, one) for one in ranges(connection)):
            _make(connection, period)
            made.append(period.partition)
    if made:
        log.info("partitions_made %s", ",".join(made))
        connection.execute("ANALYZE event_log")  # autovacuum gathers no statistics of the whole
    return made


def _wanted(now: datetime, monthly: bool) -> Iterator[Period]:
    """Years first, where wanted; months are what is made where a part of the year has partitions already."""
    for by_month in (True,) if monthly else (False, True):
        period = Period.of(now, monthly=by_month)
        while period.start <= now + AHEAD and period.start < FAR:
            yield period
            period = period.next


def _within(period: Period, hole: Range) -> bool:
    return hole.low <= least_id(period.start) and (hole.high is None or least_id(period.end) <= hole.high)


def _make(connection: Connection[Any], period: Period) -> None:
    """Attaching locks the default partition alone against readers, for as long as it takes to look through it."""
    bounds = {"low": sql.Literal(str(least_id(period.start))), "high": sql.Literal(str(least_id(period.end)))}
    names = {"made": sql.Identifier(period.partition), "default": sql.Identifier(DEFAULT)}

    def make() -> None:
        for statement in (
            "LOCK TABLE {default} IN ACCESS EXCLUSIVE MODE",
            "CREATE TABLE {made} (LIKE event_log INCLUDING ALL)",
            "WITH moved AS (DELETE FROM {default} WHERE event_id >= {low} AND event_id < {high} RETURNING *)"
            " INSERT INTO {made} SELECT * FROM moved",
            "ALTER TABLE event_log ATTACH PARTITION {made} FOR VALUES FROM ({low}) TO ({high})",
        ):
            connection.execute(sql.SQL(statement).format(**names, **bounds))

    patiently(connection, make)


def drop(connection: Connection[Any], partition: str) -> None:
    """Drop a partition with all that is in it; in the caller's transaction, which should end soon after."""
    statement = sql.SQL("DROP TABLE {}").format(sql.Identifier(partition))
    patiently(connection, lambda: connection.execute(statement))


def patiently(connection: Connection[Any], work: Callable[[], T]) -> T:
    """Do `work` in a transaction (or savepoint) of its own, again where somebody holds a lock that it wants."""
    for left in reversed(range(_TRIES)):
        try:
            with connection.transaction():
                connection.execute(_BRIEFLY)
                return work()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            if not left:
                raise
            time.sleep(_PAUSE)
    raise AssertionError("unreachable")
