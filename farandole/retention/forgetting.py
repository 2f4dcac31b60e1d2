"""Forgets jobs that have ended and lie before the policy: whole partitions by dropping them, the rest job by job."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from farandole import postgres
from farandole.postgres import Connection, psycopg, sql
from farandole.retention import partitions, policy
from farandole.retention.partitions import Range
from farandole.retention.periods import Period
from farandole.retention.policy import Held
from farandole.settings import Settings

log = logging.getLogger("farandole.retention")

_FILES = postgres.texts(__file__)
_SQL = {name: text.replace("{ended}", f"({_FILES['ended']})") for name, text in _FILES.items()}

#: Jobs in one transaction: it holds their rows, and an event that comes late for one of them waits for its end.
CHUNK = 500

#: How often the lock of builds is asked for, and seconds between.
_TRIES, _PAUSE = 5, 0.1

_BUILDING = "a projection is being built"


@dataclass(frozen=True, slots=True)
class Part:
    """What is, or would be, forgotten of one partition."""

    partition: str
    jobs: int
    events: int
    held: Held | None  #: those of them that have not ended
    dropped: bool  #: it goes as a whole: its time is over, and nothing keeps it


@dataclass(slots=True)
class Forgotten:
    """What one carrying out of the policy did, or would do."""

    jobs: int = 0
    events: int = 0
    dropped: list[str] = field(default_factory=list)  #: partitions
    held: list[Held] = field(default_factory=list)
    put_off: str | None = None  #: why nothing was done, or not all of it


def preview(connection: Connection[Any], keep: timedelta, now: datetime) -> Forgotten:
    """What `forget` would do; changes nothing."""
    parts = _survey(connection, _due_ranges(connection, now - keep), now - keep, closely=True)
    return Forgotten(
        sum(part.jobs for part in parts),
        sum(part.events for part in parts),
        [part.partition for part in parts if part.dropped],
        [part.held for part in parts if part.held],
    )


def forget(
    settings: Settings,
    connection: Connection[Any],
    keep: timedelta,
    now: datetime,
    stopped: Callable[[], bool] = lambda: False,
) -> Forgotten:
    """Forget the jobs that have ended and whose last event is older than `keep`, until `stopped()`.

    Each chunk is a transaction: a crash leaves jobs whole or forgotten. Does nothing while a projection is built from the
    event log, or somebody else is forgetting.
    """
    with _alone(settings, connection) as why_not:
        if why_not:
            return Forgotten(put_off=why_not)
        cutoff, done = now - keep, Forgotten()
        due = _due_ranges(connection, cutoff)
        for part in _survey(connection, due, cutoff):
            if part.held:
                done.held.append(part.held)
            if part.dropped and not stopped() and _drop(connection, part.partition, cutoff, done):
                due = [one for one in due if one.partition != part.partition]
        _forget_rows(connection, due, cutoff, done, stopped)
        policy.looked(connection, now, done.held)
    if done.jobs or done.dropped:
        log.info("forgot jobs=%s events=%s dropped=%s", done.jobs, done.events, ",".join(done.dropped) or "-")
    return done


@contextmanager
def _alone(settings: Settings, connection: Connection[Any]) -> Iterator[str | None]:
    """Nobody builds a projection meanwhile, which would fold half of a job; or the reason why it cannot be now."""
    for _ in range(_TRIES):  # a builder holds it for a moment longer than there is something to build
        with postgres.try_advisory_lock(connection, "projections", settings.schema_name) as mine:
            if mine:
                yield _BUILDING if _half_built(connection) else None
                return
        time.sleep(_PAUSE)
    yield _BUILDING


def _half_built(connection: Connection[Any]) -> bool:
    """Whether a build was begun, which may go on later from where it is."""
    row = connection.execute("SELECT EXISTS (SELECT FROM projection_build WHERE state = 'building')").fetchone()
    return bool(row and row[0])


def _due_ranges(connection: Connection[Any], cutoff: datetime) -> list[Range]:
    """The ids among which jobs are looked for: all but months that will be over, and be dropped, in time."""

    def waits(one: Range) -> bool:
        period = Period.named(one.partition)
        return period is not None and period.month is not None and period.end > cutoff

    return [one for one in partitions.ranges(connection) if not waits(one)]


def _survey(connection: Connection[Any], due: Sequence[Range], cutoff: datetime, closely: bool = False) -> list[Part]:
    given = {"names": [one.partition for one in due], "cutoff": cutoff, "closely": closely}
    rows = connection.execute(_statement("survey"), given | _bounds(due)).fetchall()
    found = {name: rest for name, *rest in rows}
    parts = []
    for name in dict.fromkeys(one.partition for one in due):
        jobs, events, others, held, some = found.get(name, (0, 0, 0, 0, []))
        period = Period.named(name)
        over = period is not None and period.end <= cutoff
        parts.append(Part(name, jobs, events, Held(name, held, some) if held else None, over and not others))
    return parts


def _drop(connection: Connection[Any], partition: str, cutoff: datetime, done: Forgotten) -> bool:
    """Drop a partition with its jobs, unless something keeps it after all; then its jobs are looked at one by one."""
    try:
        with connection.transaction():
            jobs, events = _empty(connection, partition, cutoff)
            partitions.drop(connection, partition)
            _mark(connection, cutoff, jobs, events)
    except (_Kept, psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as reason:
        log.info("partition_kept partition=%s: %s", partition, reason)
        return False
    done.jobs, done.events = done.jobs + jobs, done.events + events
    done.dropped.append(partition)
    return True


class _Kept(Exception):
    """A partition holds events that must stay."""


def _empty(connection: Connection[Any], partition: str, cutoff: datetime) -> tuple[int, int]:
    """Forget the jobs of a partition, all but their events, and let no event come to it. How many jobs and events."""
    table = {"partition": sql.Identifier(partition)}
    lock = sql.SQL("LOCK TABLE {partition} IN SHARE MODE").format(**table)
    partitions.patiently(connection, lambda: connection.execute(lock))
    connection.execute(_statement("part_jobs").format(**table))
    row = connection.execute(_statement("part_counts"), {"cutoff": cutoff}).fetchone()
    jobs, events, keepers = row or (0, 0, 0)
    if keepers:
        raise _Kept(f"{keepers} jobs keep it")
    if connection.execute(_statement("part_forget")).rowcount != jobs:
        raise _Kept("events came meanwhile")
    connection.execute(_statement("part_rest"))
    return jobs, events


def _forget_rows(
    connection: Connection[Any],
    due: Sequence[Range],
    cutoff: datetime,
    done: Forgotten,
    stopped: Callable[[], bool],
) -> None:
    connection.execute("DROP TABLE IF EXISTS pg_temp.due")
    connection.execute(_statement("due"), _bounds(due) | {"cutoff": cutoff})
    connection.execute("CREATE INDEX ON pg_temp.due (trace_id)")
    reached = UUID(int=0)
    while chunk := _ids(connection, "take", after=reached, many=CHUNK):
        if stopped():
            done.put_off = "it was asked to stop"
            break
        reached = chunk[-1]
        with connection.transaction():
            locked = _ids(connection, "lock_jobs", jobs=chunk, cutoff=cutoff)
            gone = _ids(connection, "unmoved", jobs=locked, cutoff=cutoff)  # sees what came before the lock was had
            events = connection.execute(_statement("forget_jobs"), {"jobs": gone}).rowcount if gone else 0
            if gone:
                _mark(connection, cutoff, len(gone), events)
        done.jobs, done.events = done.jobs + len(gone), done.events + events
    connection.execute("DROP TABLE pg_temp.due")


def _mark(connection: Connection[Any], cutoff: datetime, jobs: int, events: int) -> None:
    """Last of a transaction: no deleted event lies beyond the offsets that are seen now."""
    connection.execute(_statement("mark"), {"cutoff": cutoff, "jobs": jobs, "events": events})


def _ids(connection: Connection[Any], name: str, **given: Any) -> list[Any]:
    return [row[0] for row in connection.execute(_statement(name), given).fetchall()]


def _bounds(chosen: Sequence[Range]) -> dict[str, list[Any]]:
    return {"lows": [one.low for one in chosen], "highs": [one.high for one in chosen]}


def _statement(name: str) -> sql.SQL:
    return postgres.script(_SQL[name])
