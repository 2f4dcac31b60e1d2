"""The event log's partitions: made from an older database, made ahead, and never what an event fails for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from alembic import command
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from farandole import migrate, postgres
from farandole.errors import ConfigurationError
from farandole.postgres import Connection, sql
from farandole.retention import partitions, sizes
from farandole.retention.partitions import DEFAULT
from farandole.retention.periods import Period
from farandole.retention.upkeep import Upkeep
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.projection_tables import one
from tests.integration.retention.old_jobs import NOW, Jobs

#: Events of now, of three years ago, of 2050, and those of ids that are hashes.
IDS = [
    f"{prefix:012x}80008000{number:012x}" for number, prefix in enumerate((0, 1 << 40, 2_540_000_000_000, 0xFFFF << 32))
]


@pytest.fixture
def older(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    """A database of version 0003 that holds events."""
    settings = farandole_settings
    with postgres.connect(settings) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(settings.schema_name)))
        engine = create_engine(
            "postgresql+psycopg://", creator=lambda: postgres.connect(settings, autocommit=False), poolclass=NullPool
        )
        with engine.connect() as migrating:
            command.upgrade(migrate._config(migrating, settings.schema_name), "0003")
            migrating.commit()
        now = [
            f"{int((datetime.now(UTC) - timedelta(days=days)).timestamp() * 1000):012x}{days:020x}"
            for days in range(0, 90, 9)
        ]
        for days, event_id in enumerate((*now, *IDS)):
            connection.execute(
                "INSERT INTO event_log VALUES (%s, gen_random_uuid(), null, 'jobs.Submitted', 'submitted', null, 'a', 0, 0, 1,"
                " null, null, null, null, now(), 'jobs.submitted', 0, 1, now() - %s * interval '7 days', %s, %s, false, 1)",
                (event_id, days, b"x" * 5000, '{"text": "' + "word " * 2000 + '"}'),
            )
        yield connection


def test_a_database_of_before_keeps_every_event_index_and_view_and_grant(
    older: Connection[Any], farandole_settings: Settings
) -> None:
    for statement in (
        "CREATE INDEX of_mine ON event_log (type) WHERE stage IS NOT NULL",
        "CREATE VIEW direct WITH (security_barrier=true) AS SELECT event_id, body->>'text' AS text FROM event_log",
        "CREATE VIEW built_on_it AS SELECT text FROM direct JOIN event_log USING (event_id)",
        "GRANT SELECT ON direct, event_log TO PUBLIC",
        "GRANT UPDATE (stage) ON event_log TO PUBLIC",
    ):
        older.execute(statement)
    before = older.execute("SELECT * FROM event_log ORDER BY event_id").fetchall()
    granted = (
        "SELECT string_agg(relname || relacl::text || coalesce(reloptions::text, ''), ' ' ORDER BY relname) FROM pg_class"
        " WHERE relname IN ('direct', 'event_log', 'built_on_it') AND relnamespace = current_schema()::regnamespace"
    )
    grants = one(older, granted)

    migrate.migrate(farandole_settings)

    assert older.execute("SELECT * FROM event_log ORDER BY event_id").fetchall() == before
    assert one(older, "SELECT count(text) FROM built_on_it") == len(before) == 14
    assert one(older, granted) == grants
    assert (
        one(older, "SELECT count(*) FROM pg_attribute WHERE attrelid = 'event_log'::regclass AND attacl IS NOT NULL")
        == 1
    )
    indexes = older.execute(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'event_log'::regclass ORDER BY 1"
    ).fetchall()
    assert [name for (name,) in indexes] == ["event_log_blocked", "event_log_journey", "event_log_pkey", "of_mine"]
    older.execute("SELECT * FROM dead_letter")
    assert {Period(datetime.now(UTC).year).partition, "event_log_past", "event_log_far", DEFAULT} <= {
        size.table for size in sizes.measure(older).partitions
    }
    rows = older.execute("SELECT tableoid::regclass::text, count(*) FROM event_log GROUP BY 1").fetchall()
    found = dict(rows)
    assert (found["event_log_past"], found["event_log_far"], found[DEFAULT]) == (2, 1, 1)
    assert migrate.check(farandole_settings) == []


def test_what_cannot_be_taken_over_is_named_and_nothing_is_changed(
    older: Connection[Any], farandole_settings: Settings
) -> None:
    older.execute("CREATE MATERIALIZED VIEW of_mine AS SELECT type FROM event_log")
    older.execute("CREATE TABLE of_mine_too (event_id uuid REFERENCES event_log)")
    with pytest.raises(
        ConfigurationError, match=r"foreign key \w+ of of_mine_too, materialized view of_mine. Drop them"
    ):
        migrate.migrate(farandole_settings)
    assert one(older, "SELECT relkind::text FROM pg_class WHERE oid = 'event_log'::regclass") == "r"
    assert one(older, "SELECT count(*) FROM event_log") == 14


def test_an_event_of_a_month_without_partition_is_kept_and_moves_when_the_partition_is_made(jobs: Jobs) -> None:
    job = jobs.job(-100)  # September; made are June to August
    assert jobs.partitions()[DEFAULT] == 2
    assert partitions.make_ahead(jobs.connection, NOW + timedelta(days=40), monthly=True) == ["event_log_2031_09"]
    assert (jobs.partitions()[DEFAULT], jobs.partitions()["event_log_2031_09"]) == (0, 2)
    assert partitions.make_ahead(jobs.connection, NOW + timedelta(days=40), monthly=True) == []
    assert jobs.left() == {job: 2}
    jobs.fold(jobs.records)  # dedup holds across the move
    assert jobs.left() == {job: 2}
    indexes = "SELECT count(indexrelid) FROM pg_index WHERE indrelid = 'event_log_2031_09'::regclass AND EXISTS"
    assert one(jobs.connection, indexes + " (SELECT FROM pg_inherits WHERE inhrelid = indexrelid)") == 3


def test_where_nothing_is_forgotten_a_year_has_one_partition_and_a_policy_brings_months(jobs: Jobs) -> None:
    def made(year: int, *, monthly: bool) -> list[str]:
        return partitions.make_ahead(jobs.connection, datetime(year, 11, 20, tzinfo=UTC), monthly=monthly)

    assert made(2040, monthly=False) == ["event_log_2040", "event_log_2041"]
    assert made(2041, monthly=True) == ["event_log_2042_01"]
    assert made(2042, monthly=False) == ["event_log_2043", "event_log_2042_11", "event_log_2042_12"]
    assert made(2101, monthly=False) == []


def test_a_reader_with_a_long_query_is_waited_for_in_short_turns(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres.connect(jobs.settings, autocommit=False) as reader:
        reader.execute("SELECT count(*) FROM event_log")
        waited: list[float] = []

        def pause(seconds: float) -> None:
            waited.append(seconds)
            one(reader, "SELECT count(*) FROM event_log")  # nobody stands in its way
            reader.rollback()

        monkeypatch.setattr("farandole.retention.partitions.time.sleep", pause)
        assert partitions.make_ahead(jobs.connection, NOW + timedelta(days=31), monthly=True) == ["event_log_2031_09"]
    assert len(waited) == 1


def test_one_of_many_projectors_makes_partitions_and_all_end_when_they_are_told_to(jobs: Jobs) -> None:
    missing = Period(datetime.now(UTC).year).partition
    jobs.connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(missing)))
    threads = threading.active_count()
    with Upkeep(jobs.settings, every=0.05), Upkeep(jobs.settings, every=0.05):
        eventually(lambda: missing in jobs.partitions(), f"{missing} is made")
    assert threading.active_count() == threads


def test_upkeep_outlives_whatever_goes_wrong(jobs: Jobs, caplog: pytest.LogCaptureFixture) -> None:
    jobs.connection.execute("ALTER TABLE retention RENAME TO away")
    with Upkeep(jobs.settings, every=0.05):
        eventually(lambda: "upkeep_put_off" in caplog.text, "it says what is wrong")
        jobs.connection.execute("ALTER TABLE away RENAME TO retention")
        jobs.connection.execute("UPDATE retention SET keep = '1 day'")
        eventually(lambda: one(jobs.connection, "SELECT looked_at FROM retention"), "it goes on")
