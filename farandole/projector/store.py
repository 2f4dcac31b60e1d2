"""The database side of a projector: claims of partitions, and one transaction a batch."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from farandole import postgres
from farandole.errors import Unreachable
from farandole.kafka import Record
from farandole.postgres import Connection, Jsonb, psycopg
from farandole.projector.expired import Expired
from farandole.projector.folds import Folds
from farandole.projector.rows import COLUMNS, Batch, Parked, copy_data, parked_row
from farandole.settings import Settings

log = logging.getLogger("farandole.projector")

#: A partition: the topic's name without the namespace, and its number.
Place = tuple[str, int]

_SQL = postgres.texts(__file__)
_COPY = "COPY incoming ({}) FROM STDIN (FORMAT binary)".format(", ".join(f'"{name}"' for name in COLUMNS))

#: Seconds. How long a claim or a release waits for the batch that is being written; the database may be frozen.
TURN = 10.0

#: Kafka's offsets are below this.
_NEVER = 2**63

#: Records. So many that are parked in one batch have a line each in the log; a stream of them must not flood it.
TOLD = 20

#: How often a batch is tried again because partitions change places under it.
AGAIN = 3

#: SQLSTATE classes of an error that this very data causes each time: cardinality, data, integrity, limits.
_DATA_ERRORS = ("21", "22", "23", "54")


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write a partition, as long as nobody claims it anew."""

    epoch: int
    next_offset: int | None  #: None: nothing was folded yet
    topic_id: str | None
    gap: str | None


@dataclass(frozen=True, slots=True)
class Folded:
    """What one transaction did."""

    new: int
    duplicates: int
    parked: int
    refused: frozenset[Place]  #: partitions that belong to another projector now; nothing of them was written


class Store:
    """A connection that folds batches; after any error open another one.

    One call at a time: a claim or a release waits for the batch that is being written.
    """

    def __init__(self, settings: Settings, owner: str) -> None:
        self._settings = settings
        self._owner = owner
        self._turn = threading.Lock()
        self._connection: Connection[Any] = postgres.connect(settings, application=f"farandole projector {owner}")
        self._connection.execute(postgres.script(_SQL["session"]), prepare=False)
        self._folds = Folds(self._connection)
        self._expired = Expired(settings, self._connection)

    def close(self) -> None:
        self._connection.close()

    def claim(self, places: Iterable[Place]) -> dict[Place, Claim]:
        """Take over partitions; waits until their old owner's open transaction has ended."""
        wanted = sorted(places)
        with self._briefly():
            rows = self._run("claim", **_columns(wanted))
            self._expired.claimed()
        return {(topic, number): Claim(*rest) for topic, number, *rest in rows}

    def release(self, claims: Mapping[Place, int]) -> None:
        """Give partitions (with the epochs they were claimed with) back."""
        places = sorted(claims)
        with self._briefly():
            self._run("release", **_columns(places), epochs=[claims[place] for place in places])

    def set_gap(self, place: Place, epoch: int, reason: str) -> None:
        with self._briefly():
            self._run("set_gap", topic=place[0], partition=place[1], epoch=epoch, gap=reason)

    def set_topic_id(self, place: Place, topic_id: str) -> None:
        with self._briefly():
            self._run("set_topic_id", topic=place[0], partition=place[1], topic_id=topic_id)

    def fold(self, batch: Batch, reached: Mapping[Place, int], epochs: Mapping[Place, int]) -> Folded:
        """Write a batch and the offsets `reached`, in one transaction. Partitions claimed by others are left out.

        Raises `folds.NotLive`, and whatever the database says: then nothing was written, or (where the connection
        broke at the commit) everything; the stored offsets tell.
        """
        with self._turn, self._connection.transaction():
            stored = self._lock(reached, epochs)
            batch = self._still_wanted(batch, stored)
            self._folds.learn()
            self._expired.sift(batch)
            new = self.take(batch) if batch.rows else 0
            self._park(batch.parked)
            self._write_offsets({place: reached[place] for place in stored})
        refused = frozenset(reached) - frozenset(stored)
        return Folded(new, len(batch.rows) - new, len(batch.parked), refused)

    @contextmanager
    def beside(self) -> Iterator[Connection[Any]]:
        """A transaction for `take` of events that no partition brings now. Who changes projections waits for its end."""
        with self._in_turn(), self._connection.transaction():
            self._connection.execute("LOCK TABLE projector_offset IN ROW SHARE MODE")
            self._folds.learn()
            yield self._connection

    @contextmanager
    def _briefly(self) -> Iterator[None]:
        """For one statement of the consuming thread, which has its group to answer: a server that hangs is cut off."""
        with self._in_turn(), postgres.bounded(self._connection, TURN):
            yield

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=TURN):
            raise Unreachable(f"Postgres has been at work on one batch for more than {TURN:.0f} s")
        try:
            yield
        finally:
            self._turn.release()

    def _lock(self, places: Mapping[Place, int], epochs: Mapping[Place, int]) -> dict[Place, int]:
        """Hold the offset rows; the stored offsets of those that are still ours."""
        rows = self._run("lock_offsets", **_columns(sorted(places)))
        return {
            (topic, number): next_offset or 0
            for topic, number, owner, epoch, next_offset, gap in rows
            if owner == self._owner and epoch == epochs[topic, number] and gap is None
        }

    def _still_wanted(self, batch: Batch, stored: Mapping[Place, int]) -> Batch:
        """The batch without what is not ours any more, or was folded before."""
        starts = {(self._settings.topic(topic), number): start for (topic, number), start in stored.items()}

        def wanted(record: Record) -> bool:
            return record.offset >= starts.get((record.topic, record.partition), _NEVER)

        kept = [both for both in zip(batch.records, batch.rows, strict=True) if wanted(both[0])]
        parked = [item for item in batch.parked if wanted(item.record)]
        if len(kept) == len(batch.rows) and len(parked) == len(batch.parked):
            return batch
        return Batch([record for record, _ in kept], [row for _, row in kept], parked)

    def take(self, batch: Batch) -> int:
        """Insert and fold, inside the transaction of `fold` or `beside`; returns how many events were new.

        A record that the database refuses is found by halving, and is one more of `batch.parked` then.
        """
        new, pending, another, again = 0, [(0, len(batch.rows))], False, AGAIN
        while pending:
            if another:  # it would be folded again
                self._connection.execute("DELETE FROM incoming; DELETE FROM fresh")
            start, end = pending.pop()
            try:
                with self._connection.transaction():  # a savepoint
                    new += self._insert_and_fold(batch.rows[start:end])
            except psycopg.Error as error:
                if (error.sqlstate or "")[:2] not in _DATA_ERRORS:
                    raise
                if again and _moved(error):
                    again -= 1
                    pending.append((start, end))
                elif end - start == 1:
                    reason = str(error.diag.message_primary or error)
                    batch.parked.append(Parked(batch.records[start], "refused", reason))
                else:
                    middle = (start + end) // 2
                    pending += [(middle, end), (start, middle)]
            else:
                another = True
        return new

    def _insert_and_fold(self, rows: Sequence[bytes]) -> int:
        execute = self._connection.execute
        with self._connection.cursor().copy(_COPY) as copy:
            copy.write(copy_data(rows))
        new = execute(postgres.script(_SQL["insert_new"])).rowcount
        if new < len(rows):
            execute(postgres.script(_SQL["insert_conflicts"]))
            execute(postgres.script(_SQL["delete_known"]))
        if new:
            self._folds.run()
            self._run("notify", schema=self._settings.schema_name)
        return new

    def _park(self, aside: Sequence[Parked]) -> None:
        """In one go: a stream of records that nobody can read must not be slower than one that is read."""
        rows = [parked_row(one, self._settings) for one in aside]
        for row in rows[:TOLD]:
            log.warning(
                "parked topic=%(topic)s partition=%(partition)s offset=%(offset)s cause=%(cause)s: %(error)s", row
            )
        if len(rows) > TOLD:
            log.warning("parked %d more of this batch; `farandole parked list` has them", len(rows) - TOLD)
        if rows:
            given = [row | {"headers": Jsonb(row["headers"])} for row in rows]
            self._connection.cursor().executemany(postgres.script(_SQL["park"]), given)

    def _write_offsets(self, reached: Mapping[Place, int]) -> None:
        places = sorted(reached)
        self._run("write_offsets", **_columns(places), offsets=[reached[place] for place in places])

    def _run(self, name: str, **parameters: Any) -> list[Any]:
        cursor = self._connection.execute(postgres.script(_SQL[name]), parameters | {"owner": self._owner})
        return cursor.fetchall() if cursor.description else []


def _moved(error: psycopg.Error) -> bool:
    """Whether a row was on its way into a partition that has just given up its place to another one.

    A constraint that somebody has made has a name, and an error that a trigger raises has no table.
    """
    return (
        isinstance(error, psycopg.errors.CheckViolation)
        and not error.diag.constraint_name
        and (error.diag.table_name or "").startswith("event_log")
    )


def _columns(places: Sequence[Place]) -> dict[str, list[Any]]:
    return {"topics": [topic for topic, _ in places], "partitions": [number for _, number in places]}
