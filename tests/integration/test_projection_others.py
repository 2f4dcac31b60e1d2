"""Projections beside what is not theirs: tables of other schemas and of other projections, readers, rights."""

from __future__ import annotations

import threading
from collections.abc import Callable
from shutil import rmtree
from typing import Any

import pytest

from farandole import postgres, projections
from farandole.errors import ConfigurationError, FarandoleError
from farandole.postgres import Connection
from farandole.project import Project
from farandole.projections import beside, building, installing, registered
from farandole.projections.building import Builder
from farandole.projections.registered import want
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.projection_builds import (
    DOUBLE,
    FOLD,
    STAGES,
    TABLES,
    batches,
    build,
    database,
    project,
    seen,
    state,
    wanted,
)
from tests.integration.projection_tables import one

__all__ = ["batches", "database", "project"]  # fixtures


def test_a_table_or_view_of_the_same_name_in_public_is_left_alone(
    project: Project, database: Connection[Any], farandole_settings: Settings
) -> None:
    name = f"{farandole_settings.schema_name}_bought"
    database.execute(
        postgres.script(f"CREATE TABLE public.{name} (n int); CREATE VIEW public.{name}_v AS SELECT 1 AS n")
    )
    try:
        tables, fold = TABLES.replace("seen", name), FOLD.replace("seen", name)
        seen(project, fold, tables, f"CREATE VIEW {name}_v AS SELECT count(*) AS n FROM {name};", name="bought")
        projections.install(farandole_settings, projections.discover(project))
        assert one(database, f"SELECT count(*) FROM public.{name}") == 0
        assert one(database, f"SELECT n FROM public.{name}_v") == 1
        rmtree(project.projections / "bought")
        projections.drop(farandole_settings, projections.discover(project), "bought")
        assert one(database, f"SELECT count(*) FROM public.{name}") == 0
        assert one(database, f"SELECT n FROM public.{name}_v") == 1
        assert one(database, f"SELECT to_regclass('{name}')::text") == f"{name}", "of public alone"
    finally:
        database.execute(postgres.script(f"DROP VIEW public.{name}_v; DROP TABLE public.{name}"))


def test_dropping_a_version_that_never_was_live_drops_nothing_of_others(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings
) -> None:
    """A folder copied without renaming its tables fails; its removal must not take the other's tables along."""
    batches()
    seen(project, DOUBLE, name="seen_again")
    with pytest.raises(ConfigurationError, match="the table seen is there and is not this projection's"):
        projections.install(farandole_settings, projections.discover(project))
    rmtree(project.projections / "seen_again")
    projections.drop(farandole_settings, projections.discover(project), "seen_again")
    assert one(database, "SELECT sum(n) FROM seen") == one(database, STAGES)
    assert state(database, project) == ("live", None)


VIEW = "CREATE VIEW seen_v AS SELECT sum(n) AS n FROM seen;"


def test_views_that_somebody_reads_in_a_long_transaction_hold_up_no_other_reader(
    project: Project, database: Connection[Any], farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered, "TRIES", 2)
    monkeypatch.setattr(beside, "HELD", 50)
    seen(project, FOLD, views=VIEW)
    projections.install(farandole_settings, projections.discover(project))
    seen(project, FOLD, views=VIEW.replace("sum(n)", "count(*)"))
    with postgres.connect(farandole_settings) as reader, reader.transaction():
        reader.execute("SELECT n FROM seen_v")
        (problem,) = wanted(farandole_settings, project)
        assert problem.endswith("views.sql: somebody reads the old views; they are replaced at the next start")
    assert wanted(farandole_settings, project) == []
    assert one(database, "SELECT n FROM seen_v") == 0


def test_a_projection_that_somebody_reads_is_not_dropped_and_no_projector_waits_for_it(
    project: Project, database: Connection[Any], farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "TRIES", 2)
    monkeypatch.setattr(beside, "HELD", 50)
    rmtree(project.projections / "seen")
    found = projections.discover(project)
    with postgres.connect(farandole_settings) as reader, reader.transaction():
        reader.execute("SELECT * FROM seen")
        with pytest.raises(FarandoleError, match="somebody reads the tables of seen in a transaction that is open"):
            projections.drop(farandole_settings, found, "seen")
    projections.drop(farandole_settings, found, "seen")
    assert one(database, "SELECT to_regclass('seen')") is None


@pytest.mark.parametrize(
    ("made", "name"),
    [
        ("CREATE VIEW Seen_V AS SELECT 1 AS n;", "seen_v"),
        ('CREATE VIEW "seen v" AS SELECT 1 AS n;', "seen v"),
        ("CREATE MATERIALIZED VIEW seen_v AS SELECT 1 AS n;", "seen_v"),
        ("CREATE TABLE seen_t (n int);", "seen_t"),
    ],
)
def test_what_could_not_be_replaced_the_next_time_is_refused_in_views(
    made: str, name: str, project: Project, database: Connection[Any], farandole_settings: Settings
) -> None:
    seen(project, FOLD, views=made)
    with pytest.raises(ConfigurationError, match=rf"seen/views\.sql: expected only CREATE VIEW name.* it makes {name}"):
        projections.install(farandole_settings, projections.discover(project))
    seen(project, DOUBLE, views=VIEW)
    projections.install(farandole_settings, projections.discover(project))
    assert state(database, project) == ("live", None)


def test_a_foreign_key_to_a_table_of_others_is_refused(project: Project, farandole_settings: Settings) -> None:
    """It would keep the other table from being built anew, and jobs from being forgotten."""
    seen(project, FOLD, TABLES.replace("n bigint", "n bigint, job uuid REFERENCES job"))
    with pytest.raises(ConfigurationError, match=r"seen/tables\.sql: \S+ has a foreign key to job"):
        projections.install(farandole_settings, projections.discover(project))


def test_a_table_that_ends_with_a_letter_beyond_ascii_is_replaced(
    project: Project, database: Connection[Any], farandole_settings: Settings
) -> None:
    for fold in (FOLD, DOUBLE):
        seen(project, fold.replace("seen", "gesehené"), TABLES.replace("seen", "gesehené"))
        projections.install(farandole_settings, projections.discover(project))
    assert state(database, project) == ("live", None)


def test_to_a_reader_that_began_while_another_was_waited_for_no_event_is_missing(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What is folded last, while the projectors wait, is in no snapshot that was taken before."""
    monkeypatch.setattr(building, "AGAIN", 0.01)
    batches()
    said: list[str] = []
    with postgres.connect(farandole_settings) as first, postgres.connect(farandole_settings) as second:
        first.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM event_log")
        want(database, projections.discover(project)[1], anew=True)
        builder = threading.Thread(target=build, args=(farandole_settings, lambda _, what: said.append(what)))
        builder.start()
        eventually(lambda: any(what.startswith("waits for a reader: process") for what in said))
        with postgres.connect(farandole_settings) as barrier, barrier.transaction():
            barrier.execute("SELECT FROM projection_build FOR UPDATE")  # the builder folds nothing of what comes now
            batches()
            second.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            expected = one(second, STAGES)
            first.execute("COMMIT")
        eventually(lambda: said[-1] in ("waits for a reader of its tables", "is live"))
        assert one(second, "SELECT sum(n) FROM seen") == expected
        second.execute("COMMIT")
        builder.join(30)
    assert said[-1] == "is live"


def test_the_longer_a_reader_holds_the_old_tables_the_less_often_projectors_are_held_up(
    project: Project, database: Connection[Any], farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "HELD", 10)
    pauses: list[float] = []
    with postgres.connect(farandole_settings) as reader, postgres.connect(farandole_settings) as connection:
        reader.execute("BEGIN; SELECT * FROM seen")

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if seconds == building.AGAIN_MAX:
                reader.execute("COMMIT")

        want(database, projections.discover(project)[1], anew=True)
        Builder(farandole_settings, connection, lambda *_: None, pause).build_next()
    assert len(pauses) > 4
    assert pauses == sorted(pauses)
    assert state(database, project) == ("live", None)
