"""One trial: a layout folded in the sandbox, and what the tables hold then."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event
from typing import Any
from uuid import UUID

from farandole.postgres import Connection
from farandole.projections.checking.layouts import Batch, Layout
from farandole.projections.checking.sandbox import Refused, Rows, Sandbox, nulls_first

#: Seconds between two looks at whether a projector waits for the other one's locks.
_LOOK = 0.002

#: A table and one of its columns.
Column = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows of each table, or the words with which the database refused."""

    rows: dict[str, Rows]
    refused: str | None = None
    sqlstate: str = ""


class Trials:
    """Runs layouts and counts them. `ignored` are columns that are found to be different each time anyway."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.count = 0
        self.ignored: set[Column] = set()

    def run(self, layout: Layout) -> Outcome:
        """Fold into empty tables, each batch in a transaction of its own."""
        self.count += 1
        self.sandbox.empty()
        one, two = self.sandbox.connections
        try:
            if layout.way == "at once":
                for first, second in zip(layout.batches[::2], layout.batches[1::2], strict=True):
                    self._at_once(first, second)
            elif layout.way == "in turn":
                for place, batch in enumerate(layout.batches):
                    self.batch(two if place % 2 else one, batch)
            elif layout.way == "refold":
                self._refold(layout.batches)
            else:
                self.sandbox.play(layout.batches, layout.plan)
        except Refused as refused:
            return Outcome({}, str(refused), refused.sqlstate)
        return Outcome(self._seen())

    def differ(self, one: Layout, other: Layout) -> bool:
        return self.run(one) != self.run(other)

    def batch(self, connection: Connection[Any], ids: Sequence[UUID]) -> None:
        """A projector's transaction: what is new of `ids` is folded."""
        with connection.transaction():
            if self.sandbox.take(connection, ids):
                self.sandbox.fold(connection)

    def _refold(self, pieces: Sequence[Batch]) -> None:
        """As `projections refold` does: the log is there, and is folded piece by piece."""
        connection = self.sandbox.connection
        with connection.transaction():
            self.sandbox.take(connection, [one for piece in pieces for one in piece])
        for piece in pieces:
            with connection.transaction():
                self.sandbox.offer(connection, piece)
                self.sandbox.fold(connection)

    def _at_once(self, first: Batch, second: Batch) -> None:
        """Both projectors insert; the first folds, the second folds, the first commits, the second commits. Where the
        second has to wait for locks of the first, it goes on when that one has committed."""
        one, two = self.sandbox.connections
        inserted, folded = Event(), Event()
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(self._second, two, second, inserted, folded)
            try:
                with one.transaction():
                    new = self.sandbox.take(one, first)
                    inserted.wait()
                    if new:
                        self.sandbox.fold(one)
                    folded.set()
                    self._until_done_or_waiting(other)
            finally:
                folded.set()
            other.result()

    def _second(self, connection: Connection[Any], ids: Batch, inserted: Event, folded: Event) -> None:
        try:
            with connection.transaction():
                new = self.sandbox.take(connection, ids)
                inserted.set()
                folded.wait()
                if new:
                    self.sandbox.fold(connection)
        finally:
            inserted.set()

    def _until_done_or_waiting(self, other: Future[None]) -> None:
        one, two = self.sandbox.connections
        pid = two.info.backend_pid
        while not other.done():
            row = one.execute("SELECT cardinality(pg_blocking_pids(%s))", (pid,)).fetchone()
            if row and row[0]:
                return
            wait([other], _LOOK)

    def _seen(self) -> dict[str, Rows]:
        found = self.sandbox.rows()
        if not self.ignored:
            return found
        return {table: without(rows, self._places(table)) for table, rows in found.items()}

    def _places(self, table: str) -> set[int]:
        return {at for at, column in enumerate(self.sandbox.columns[table]) if (table, column) in self.ignored}

    def unsteady(self, one: Outcome, other: Outcome) -> set[Column]:
        """The columns whose values are not the same after two equal trials."""
        found = set()
        for table, columns in self.sandbox.columns.items():
            for at, column in enumerate(columns):
                values = [sorted(str(row[at]) for row in outcome.rows.get(table, [])) for outcome in (one, other)]
                if values[0] != values[1]:
                    found.add((table, column))
        return found


def without(rows: Rows, places: Collection[int]) -> Rows:
    """The rows with the values at `places` left blank."""
    if not places:
        return rows
    blank = [tuple("…" if at in places else value for at, value in enumerate(row)) for row in rows]
    return sorted(blank, key=nulls_first)
