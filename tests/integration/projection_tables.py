"""What the projector's tests share: a namespace with its tables, folding without Kafka, and what the tables hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from farandole import migrate, postgres, projections
from farandole.kafka import Record
from farandole.postgres import Connection
from farandole.project import find_project
from farandole.projections import Projection
from farandole.projector.rows import Rows
from farandole.projector.store import Folded, Place, Store
from farandole.settings import Settings
from tests import journeys, oracle
from tests.oracle import JobRow, Shown


def prepare(settings: Settings) -> list[Projection]:
    """Tables and views in the test's namespace."""
    migrate.migrate(settings)
    found = projections.discover(find_project())
    projections.install(settings, found)
    return found


class Folder:
    """A projector without Kafka: folds the records it is given, in the partitions it has claimed."""

    def __init__(self, settings: Settings, owner: str, places: Sequence[Place]) -> None:
        self.settings = settings
        self.store = Store(settings, owner)
        self.rows = Rows(journeys.schemas(settings), settings)
        self.epochs = {place: claim.epoch for place, claim in self.store.claim(places).items()}

    def fold(self, records: Sequence[Record]) -> Folded:
        reached = {(self.settings.bare(record.topic), record.partition): record.offset + 1 for record in records}
        return self.store.fold(self.rows.batch(records), reached, self.epochs)


def places(records: Sequence[Record], settings: Settings) -> list[Place]:
    return sorted({(settings.bare(record.topic), record.partition) for record in records})


def jobs(connection: Connection[Any]) -> dict[str, JobRow]:
    """job_state, in the oracle's form."""
    rows = connection.execute(
        "SELECT trace_id, stage, status, attempts, run, hop, events, dead_letters, created_at, updated_at"
        " FROM job_state"
    ).fetchall()
    return {str(row[0]): JobRow(*row[1:]) for row in rows}


def shown(connection: Connection[Any]) -> dict[str, Shown]:
    """job_state with all that it shows but the costs of model calls, in the oracle's form."""
    rows = connection.execute(
        "SELECT trace_id, stage, status, attempts, run, hop, events, dead_letters, created_at, updated_at,"
        " tenant, data, conflicts, parked FROM job_state"
    ).fetchall()
    return {str(row[0]): Shown(JobRow(*row[1:10]), row[10], row[11] or {}, *row[12:]) for row in rows}


def stage_times(connection: Connection[Any]) -> dict[tuple[str, date], tuple[int, int, datetime, datetime]]:
    rows = connection.execute("SELECT stage, day, events, attempts, first_at, last_at FROM stage_times").fetchall()
    return {(row[0], row[1]): tuple(row[2:]) for row in rows}


def stage_counts(connection: Connection[Any]) -> dict[tuple[str, date, int], oracle.Lengths]:
    rows = connection.execute(
        "SELECT stage, day, bucket, whole, waiting, working, longest FROM stage_times_counts"
    ).fetchall()
    return {(row[0], row[1], row[2]): oracle.Lengths(*row[3:]) for row in rows}


def throughput(connection: Connection[Any]) -> dict[datetime, tuple[int, int, int, int, int]]:
    rows = connection.execute("SELECT minute, events, begun, done, failed, blocked FROM throughput").fetchall()
    return {row[0]: tuple(row[1:]) for row in rows}


def failures(connection: Connection[Any]) -> dict[tuple[str, str, str], oracle.Failures]:
    rows = connection.execute(
        "SELECT agent, outcome, cause, times, first_seen, last_seen, last_event::text, last_job::text, last_error"
        " FROM failures"
    ).fetchall()
    return {(row[0], row[1], row[2]): oracle.Failures(*row[3:]) for row in rows}


def one(connection: Connection[Any], query: str) -> Any:
    """The only value of a query."""
    row = connection.execute(postgres.script(query)).fetchone()
    assert row is not None
    return row[0]


def refuse(connection: Connection[Any], state: str, hop: int = 0) -> None:
    """Have the core fold fail with this SQLSTATE where it meets the hop."""
    connection.execute(
        f"CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.hop = {hop} THEN"
        f" RAISE 'no such hop' USING ERRCODE = '{state}'; END IF; RETURN NEW; END $$;"
        " CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON job FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
