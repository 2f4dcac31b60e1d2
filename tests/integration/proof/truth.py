"""What must hold after every statement: the tables are what the log says up to the stored offsets, and nothing goes back."""

from __future__ import annotations

from typing import Any

from farandole.postgres import Connection, psycopg, sql
from farandole.projector.store import Place
from tests import oracle
from tests.integration import projection_tables as tables
from tests.integration.proof.world import Lies, World

#: Tables that a plan must find as they are.
_KEPT = ("alembic_version", "projection")


class Truth:
    """Looks at one namespace while a plan is carried out; `begin` for each plan."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

    def begin(self, world: World) -> None:
        self._world = world
        self._offsets: dict[Place, int] = {}
        self._rows: dict[str, Any] = {}
        self._jobs: dict[str, oracle.Shown] = {}
        self._empty()

    def look(self, whole: bool = False) -> None:
        """All of it, in one snapshot; `whole`: nothing is left to be folded."""
        with self._connection.transaction():
            offsets = self._positions()
            logged = self._logged()
            below = [
                item for place in offsets for item in self._world.lies[place] if item.record.offset < offsets[place]
            ]
            stayed = self._stayed(logged, below)
            self._conflicts(stayed, below)
            self._folds(stayed, below)
        if whole:
            assert {place: end for place, end in self._world.ends.items() if end} == {
                p: o for p, o in offsets.items() if o
            }

    def glance(self) -> None:
        """The same in the middle of a step. A refold that puts new tables in their place may be held there: readers wait."""
        try:
            with self._connection.transaction():
                self._connection.execute("SET LOCAL lock_timeout = '100ms'")
                self.look()
        except psycopg.errors.LockNotAvailable:
            return

    @property
    def folded(self) -> int:
        """Offsets passed, over all partitions, as of the last look."""
        return sum(self._offsets.values())

    def _empty(self) -> None:
        names = self._connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> ALL (%s)",
            (list(_KEPT),),
        ).fetchall()
        with self._connection.transaction():
            for (name,) in names:
                self._connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))

    def _positions(self) -> dict[Place, int]:
        rows = self._connection.execute("SELECT topic, partition, coalesce(next_offset, 0) FROM projector_offset")
        offsets = {(topic, partition): offset for topic, partition, offset in rows}
        back = {
            place: (was, offsets.get(place)) for place, was in self._offsets.items() if offsets.get(place, -1) < was
        }
        assert not back, f"offsets went back: {back}"
        self._offsets = offsets
        return offsets

    def _logged(self) -> dict[str, Any]:
        rows = self._connection.execute('SELECT event_id::text, topic, partition, "offset", value FROM event_log')
        logged = {row[0]: tuple(row[1:]) for row in rows}
        changed = {event_id for event_id, row in self._rows.items() if logged.get(event_id) != row}
        assert not changed, f"rows of event_log that were there have changed: {changed}"
        self._rows = logged
        return logged

    def _stayed(self, logged: dict[str, Any], below: list[Lies]) -> dict[str, Lies]:
        """Which record each event is; every good record below the offsets is one of them or the same again."""
        good = {(self._place(item), item.record.offset): item for item in below if item.happened}
        stayed = {}
        for event_id, (topic, partition, offset, value) in logged.items():
            item = good.get(((topic, partition), offset))
            assert item and item.happened, f"{event_id} comes from {topic} {partition} {offset}, which was not folded"
            assert (item.happened.fields["event_id"], item.record.value) == (event_id, value)
            stayed[event_id] = item
        for (place, offset), item in good.items():
            assert item.happened
            kept = stayed.get(item.happened.fields["event_id"])
            assert kept, f"lost: {place} {offset}"
            if self._place(kept) == place:
                assert kept.record.offset <= offset, "of two records in one partition the later one stayed"
        parked = self._coordinates("parked")
        assert parked == sorted((*self._place(item), item.record.offset) for item in below if not item.happened)
        return stayed

    def _conflicts(self, stayed: dict[str, Lies], below: list[Lies]) -> None:
        self._disputed = [
            item for item in below if item.happened and item.content != stayed[item.happened.fields["event_id"]].content
        ]
        assert self._coordinates("conflict") == sorted(
            (*self._place(item), item.record.offset) for item in self._disputed
        )

    def _folds(self, stayed: dict[str, Lies], below: list[Lies]) -> None:
        happened = [item.happened for item in stayed.values() if item.happened]
        jobs = tables.shown(self._connection)
        aside = [item.trace for item in below if not item.happened]
        assert jobs == oracle.shown(happened, [item.trace for item in self._disputed], aside)
        assert tables.stage_times(self._connection) == oracle.stage_times(happened)
        assert tables.stage_counts(self._connection) == oracle.stage_counts(happened, {})
        assert tables.throughput(self._connection) == oracle.throughput(happened)
        assert tables.failures(self._connection) == oracle.failures(happened)
        for trace, was in self._jobs.items():
            now = jobs[trace].row
            if was.row.status in oracle.TERMINAL and now.run == was.row.run:
                assert now.status in oracle.TERMINAL, (
                    f"{trace} was {was.row.status} and is {now.status} in the same run"
                )
        self._jobs = jobs

    def _place(self, item: Lies) -> Place:
        return self._world.settings.bare(item.record.topic), item.record.partition

    def _coordinates(self, table: str) -> list[tuple[str, int, int]]:
        query = sql.SQL('SELECT topic, partition, "offset" FROM {} ORDER BY 1, 2, 3').format(sql.Identifier(table))
        return self._connection.execute(query).fetchall()
