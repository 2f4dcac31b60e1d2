"""Builds a projection beside the live one, from the event log and from what comes meanwhile; then it goes live."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from farandole import postgres
from farandole.errors import ConfigurationError
from farandole.postgres import Connection, psycopg
from farandole.projections import backlog, snapshots
from farandole.projections.beside import Beside, stop_projectors
from farandole.projections.folders import CORE, Projection
from farandole.projections.registered import Build, builds
from farandole.projections.replacing import live, replace
from farandole.projections.statements import SQL, apply, told
from farandole.retention import forgot_anything
from farandole.settings import Settings

#: Called with a projection's name and what happens to it ("building", "folded 100000 of 123000 events").
Progress = Callable[[str, str], None]

#: Events that are folded in one transaction. Each costs a commit, and is lost when the builder is killed in it.
CHUNK = 100_000
#: So few that came meanwhile are folded while the projectors wait.
FEW = 2_000
#: Seconds for which readers that began before are waited for; then they may find the new tables empty.
OLD_READERS = 60.0
#: Seconds between two tries to go live, at first and at most: each holds the projectors up for a moment.
AGAIN, AGAIN_MAX = 0.5, 15.0

_NOTHING = "00000000-0000-0000-0000-000000000000"


class _Read(Exception):
    """Somebody reads who would see a part of the new tables."""


class _Superseded(Exception):
    """Another version is wanted by now, or this one from the beginning."""


class Builder:
    """Builds what is wanted, one projection after the other, on a connection of its own; one builder a namespace works.

    Killed at any moment it leaves a build that the next builder takes up where it was.
    """

    def __init__(
        self,
        settings: Settings,
        connection: Connection[Any],
        progress: Progress,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = connection
        self._progress = progress
        self._pause = pause  # may raise to end the work
        self._schema = settings.schema_name
        self._folded_at: snapshots.Moment | None = None  #: since then nothing was; None: nobody reads what is replaced
        self._replaces = False
        self._beside = Beside(settings, connection)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether this builder may work now: no other does. For the block."""
        with postgres.try_advisory_lock(self._connection, "projections", self._schema) as mine:
            yield mine

    def next(self) -> Build | None:
        """What is to be built next, or gone on with."""
        return next((build for build in builds(self._connection) if build.state != "failed"), None)

    def build_next(self) -> bool:
        """Build what is next, until it is live or has failed; False when nothing is wanted. Only `alone`.

        Raises what the database says when it is away or busy: then call it again.
        """
        build = self.next()
        if build is None:
            return False
        try:
            self._build(build)
        except _Superseded:
            self._clear(build.projection)
        except (ConfigurationError, psycopg.Error) as error:
            if isinstance(error, psycopg.Error) and postgres.is_outage(error):
                raise
            self._fail(build, error)
        return True

    def _build(self, build: Build) -> None:
        projection = build.projection
        self._replaces = any(one.name == projection.name for one in live(self._connection))
        self._folded_at = None if build.state == "wanted" else self._now()
        if build.state == "wanted":
            self._progress(projection.name, "building")
            if projection.name != CORE and forgot_anything(self._connection):
                self._progress(projection.name, "lacks jobs that were forgotten: they are in the event log no more")
            self._begin(projection)
        while self._fold_piece(projection):
            self._folded_at = self._now()
            self._pause(0)
        self._catch_up(projection)
        self._wait_for_readers(projection)
        again, patient = AGAIN, time.monotonic() + OLD_READERS
        while not self._go_live(projection, time.monotonic() < patient):
            self._pause(again)
            again = min(2 * again, AGAIN_MAX)
            self._catch_up(projection)

    def _begin(self, projection: Projection) -> None:
        """From this transaction on, projectors write what is new into the backlog; the rest is folded by ranges of ids."""
        row = self._connection.execute(SQL["expected"]).fetchone()
        expected = row[0] if row else 0
        with self._connection.transaction():
            stop_projectors(self._connection)
            self._still_wanted(projection, "wanted")
            self._beside.make()
            self._connection.execute("DELETE FROM projection_backlog WHERE name = %s", (projection.name,))
            self._beside.look_here()
            self._beside.make_tables(projection)
            self._beside.try_fold(projection)
            self._connection.execute(
                "UPDATE projection_build SET state = 'building', expected = %s, moved_at = now(),"
                " upto = (SELECT event_id FROM event_log ORDER BY event_id DESC LIMIT 1) WHERE name = %s",
                (expected, projection.name),
            )

    def _fold_piece(self, projection: Projection) -> bool:
        """Fold the next events of those that were there when the build began; False when none is left."""
        with self._connection.transaction():
            reached, upto = self._still_wanted(projection)
            row = self._connection.execute(
                SQL["piece"], {"reached": reached or _NOTHING, "upto": upto, "size": CHUNK}
            ).fetchone()
            count, last = row or (0, None)
            if not count:
                return False
            self._beside.look_here()
            self._beside.over(
                "SELECT * FROM event_log WHERE event_id > {reached} AND event_id <= {last} AND NOT EXISTS"
                " (SELECT FROM projection_backlog AS later WHERE later.name = {name} AND later.event_id = event_log.event_id)",
                reached=reached or _NOTHING, last=last, name=projection.name,
            )  # fmt: skip
            apply(self._connection, projection, "fold.sql")
            folded = self._connection.execute(
                "UPDATE projection_build SET reached = %s, folded = folded + %s, moved_at = now() WHERE name = %s"
                " RETURNING folded, expected",
                (last, count, projection.name),
            ).fetchone()
        if folded:
            self._progress(projection.name, f"folded {folded[0]} of about {max(folded)} events")
        return True

    def _catch_up(self, projection: Projection) -> None:
        """Fold what came meanwhile, until only a few events are left."""
        while True:
            with self._connection.transaction():
                self._still_wanted(projection)
                count = backlog.fold(self._connection, self._beside, projection, CHUNK)
            if count:
                self._folded_at = self._now()
            if count < FEW:
                break
            self._pause(0)

    def _now(self) -> snapshots.Moment | None:
        return snapshots.now(self._connection) if self._replaces else None

    def _wait_for_readers(self, projection: Projection) -> None:
        """To a transaction that sees the database as it was before all was folded the new tables would seem empty."""
        deadline, last, folded_at = time.monotonic() + OLD_READERS, "", self._folded_at
        while folded_at and time.monotonic() < deadline:
            reader = snapshots.before(self._connection, folded_at)
            if reader is None:
                return
            if last != (last := f"waits for a reader: {reader}"):
                self._progress(projection.name, last)
            self._pause(AGAIN)
            self._catch_up(projection)  # or the projectors would have to wait for all that came meanwhile

    def _go_live(self, projection: Projection, patient: bool) -> bool:
        """Fold the rest while the projectors wait, and replace the old tables; False when a reader holds those for long.

        `patient`: or has a snapshot already, which would not see the rest.
        """
        try:
            with self._connection.transaction():
                stop_projectors(self._connection)
                self._still_wanted(projection)
                folded_at = self._folded_at
                while backlog.fold(self._connection, self._beside, projection, CHUNK):
                    folded_at = self._now()
                if patient and folded_at and snapshots.before(self._connection, folded_at):
                    raise _Read
                self._connection.execute("DROP TABLE IF EXISTS pg_temp.piece CASCADE")
                self._beside.look_away()
                replace(self._connection, projection, lambda: self._beside.move(projection))
                self._connection.execute("DELETE FROM projection_build WHERE name = %s", (projection.name,))
                self._beside.clear()
        except (psycopg.errors.LockNotAvailable, _Read):
            self._progress(projection.name, "waits for a reader of its tables")
            return False
        self._progress(projection.name, "is live")
        return True

    def _fail(self, build: Build, error: Exception) -> None:
        reason = told(build.projection, "fold.sql", error) if isinstance(error, psycopg.Error) else str(error)
        with self._connection.transaction():
            self._clear(build.projection)
            self._connection.execute(
                "UPDATE projection_build SET state = 'failed', error = %s, moved_at = now()"
                " WHERE name = %s AND (hash, views) = (%s, %s)",
                (reason, build.projection.name, build.projection.hash, build.projection.views),
            )
        self._progress(build.projection.name, f"failed: {reason}")

    def _clear(self, projection: Projection) -> None:
        self._beside.clear()
        self._connection.execute("DELETE FROM projection_backlog WHERE name = %s", (projection.name,))

    def _still_wanted(self, projection: Projection, state: str = "building") -> tuple[Any, Any]:
        """Hold the build's row to the end of the transaction: (reached, upto). One that is wanted anew is in another state.

        Partitions are made before or after it: a statement planned before looks where the events are no more.
        """
        row = self._connection.execute(
            "SELECT reached, upto FROM projection_build WHERE name = %s AND (hash, views, state) = (%s, %s, %s) FOR UPDATE",
            (projection.name, projection.hash, projection.views, state),
        ).fetchone()
        if row is None:
            raise _Superseded(projection.name)
        self._connection.execute("LOCK TABLE event_log IN ACCESS SHARE MODE")
        return row[0], row[1]
