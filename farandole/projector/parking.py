"""Parked records taken up again: read with the schemas of today, folded as a projector would, and parked no longer."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from farandole import migrate, parked, postgres
from farandole.contracts.lookup import Schemas
from farandole.errors import Stopped
from farandole.kafka import Record
from farandole.parked import Chosen, ParkedRecord
from farandole.postgres import Connection, psycopg
from farandole.projector.body import clean
from farandole.projector.expired import EXPIRED
from farandole.projector.folds import NotLive
from farandole.projector.rows import Batch, Parked, Rows
from farandole.projector.store import Store
from farandole.settings import Settings

#: Topic with the namespace, partition, offset, and Kafka's timestamp, which tells a topic that was made again from the old one.
_Spot = tuple[str, int, int, int]

_SQL = postgres.texts(__file__, "parked_*.sql")

#: Tries of one batch where the database ends it for the sake of another transaction (SQLSTATE class 40).
_TRIES = 5

#: Characters of an error that are kept.
_LONGEST = 2000


@dataclass(slots=True)
class Retried:
    """What became of some records; what somebody else has taken up meanwhile is in none of the numbers."""

    tried: int = 0
    new: int = 0  #: folded now
    known: int = 0  #: their events were in the log already
    left: Counter[str] = field(default_factory=Counter)  #: parked still, by cause

    def add(self, more: Retried) -> None:
        self.tried, self.new, self.known = self.tried + more.tried, self.new + more.new, self.known + more.known
        self.left += more.left


class Retry:
    """Takes parked records up, batch by batch; a crash anywhere leaves each record parked or folded, never both.

    Nothing is parked here: what cannot be read stays as it was, with the error of today, and an outage changes nothing.
    """

    def __init__(self, settings: Settings) -> None:
        """Raises Unreachable when the database does not answer."""
        migrate.migrate(settings)
        self._settings = settings
        self._rows = Rows(Schemas(settings), settings)
        self._owner = f"parked {socket.gethostname()}:{os.getpid()}"
        self._store = self._connected()

    def close(self) -> None:
        self._store.close()

    def run(self, connection: Connection[Any], chosen: Chosen) -> Iterator[Retried]:
        """Try all of `chosen`, what is parked meanwhile excepted; says after each batch what became of it.

        Raises Unreachable or psycopg's error in an outage, Stopped without a core projection; what was told
        until then has been done.
        """
        for page in parked.pages(connection, chosen, self._settings.batch):
            made = _read(self._rows, page, self._settings, chosen)  # a slow registry must not hold up a transaction
            try:
                yield self._take_up(made, chosen)
            except NotLive as waits:
                raise Stopped(f"{waits}; a projector builds it at its start") from waits

    def _take_up(self, made: Batch, chosen: Chosen) -> Retried:
        for _ in range(_TRIES - 1):
            try:
                return self._fold(made, chosen)
            except psycopg.Error as error:
                if (error.sqlstate or "")[:2] != "40":
                    raise
                self._store.close()
                self._store = self._connected()
        return self._fold(made, chosen)

    def _fold(self, made: Batch, chosen: Chosen) -> Retried:
        """One transaction: what is still parked is folded and parked no longer, or keeps the error of today."""
        with self._store.beside() as connection:
            batch = _only(made, self._hold(connection, made, chosen))
            new = self._store.take(batch) if batch.rows else 0
            refused = {_spot(one.record) for one in batch.parked}
            taken = [record for record in batch.records if _spot(record) not in refused]
            _run(connection, "parked_taken", self._places(taken))
            _run(connection, "parked_still", self._places(one.record for one in batch.parked) | _words(batch.parked))
        left = Counter(one.cause for one in batch.parked)
        return Retried(len(taken) + len(batch.parked), new, len(taken) - new, left)

    def _hold(self, connection: Connection[Any], made: Batch, chosen: Chosen) -> set[_Spot]:
        records = [*made.records, *(one.record for one in made.parked)]
        rows = _run(connection, "parked_hold", self._places(records) | {"discarded": chosen.discarded})
        return {(self._settings.topic(row[0]), *row[1:]) for row in rows}

    def _places(self, records: Iterable[Record]) -> dict[str, list[Any]]:
        names = ("topics", "partitions", "offsets", "timestamps")
        spots = [(self._settings.bare(topic), *rest) for topic, *rest in map(_spot, records)]
        return {name: [spot[index] for spot in spots] for index, name in enumerate(names)}

    def _connected(self) -> Store:
        return Store(self._settings, self._owner)


def today(
    settings: Settings, found: Iterable[Sequence[ParkedRecord]], chosen: Chosen | None = None
) -> Iterator[tuple[int, list[Parked]]]:
    """Of each batch of records: how many they are, and those that are no events today either.

    Changes nothing, so that what the database will say is not known. Raises Unreachable when a schema cannot be looked up.
    """
    rows = Rows(Schemas(settings), settings)
    for page in found:
        yield len(page), _read(rows, page, settings, chosen).parked


def _read(rows: Rows, page: Sequence[ParkedRecord], settings: Settings, chosen: Chosen | None = None) -> Batch:
    """Records of forgotten jobs, which were folded once, stay parked unless somebody names them: all counts count them."""
    named = chosen is not None and (chosen.cause == EXPIRED or chosen.offset is not None)
    left = [one for one in page if one.cause == EXPIRED and not named]
    batch = rows.batch([one.record(settings) for one in page if one.cause != EXPIRED or named])
    batch.parked += [Parked(one.record(settings), EXPIRED, one.error) for one in left]
    return batch


def _run(connection: Connection[Any], name: str, given: dict[str, Any]) -> list[Any]:
    cursor = connection.execute(postgres.script(_SQL[name]), given)
    return cursor.fetchall() if cursor.description else []


def _only(made: Batch, held: set[_Spot]) -> Batch:
    """The batch without what somebody else has taken up or discarded since it was read."""
    kept = [both for both in zip(made.records, made.rows, strict=True) if _spot(both[0]) in held]
    left = [one for one in made.parked if _spot(one.record) in held]
    return Batch([record for record, _ in kept], [row for _, row in kept], left)


def _spot(record: Record) -> _Spot:
    return record.topic, record.partition, record.offset, record.timestamp_ms


def _words(left: Sequence[Parked]) -> dict[str, list[Any]]:
    return {"causes": [clean(one.cause) for one in left], "errors": [clean(one.error)[:_LONGEST] for one in left]}
