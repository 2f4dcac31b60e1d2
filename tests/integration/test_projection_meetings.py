"""What is done to a projection while something else is done to it: builds that are wanted anew, suspension, upgrades."""

# ruff: noqa: F811  fixtures of the builds' tests

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from farandole import postgres, projections
from farandole.errors import FarandoleError
from farandole.postgres import Connection
from farandole.project import Project
from farandole.projections import building, installing, registered
from farandole.projections.building import Builder
from farandole.projections.registered import builds, register, want
from farandole.projector import builds as background
from farandole.projector import service
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.projection_builds import (  # noqa: F401
    DOUBLE,
    FOLD,
    STAGES,
    batches,
    build,
    database,
    project,
    seen,
    state,
    wanted,
)  # fmt: skip
from tests.integration.projection_tables import one

VIEWS = "CREATE OR REPLACE VIEW seen_most AS SELECT max(n) AS most FROM seen;"


@pytest.mark.parametrize("how", ["refolded", "with other views"])
def test_a_build_that_is_wanted_anew_meanwhile_begins_anew(
    how: str, project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Its version is the same, so that only the state of the build tells: half of the events must not go live."""
    monkeypatch.setattr(building, "CHUNK", 50)
    batches(), batches(), batches(), batches()
    seen(project, DOUBLE)
    wanted(farandole_settings, project)
    said: list[str] = []

    def meanwhile(_: str, what: str) -> None:
        said.append(what)
        if len(said) == 2:
            if how == "refolded":
                want(database, projections.discover(project)[1], anew=True)
            else:
                seen(project, DOUBLE, views=VIEWS)
                wanted(farandole_settings, project)

    build(farandole_settings, meanwhile)
    assert said.count("building") == 2 and said.count("is live") == 1
    assert one(database, "SELECT sum(n) FROM seen") == 2 * one(database, STAGES)
    assert builds(database) == []


def test_other_views_do_not_revive_a_suspended_projection(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings
) -> None:
    """It lacks what came since: only a refold mends it."""
    batches()
    database.execute("UPDATE projection SET error = 'division by zero' WHERE name = 'seen'")
    batches()
    since = one(database, "SELECT folded_at FROM projection WHERE name = 'seen'")
    seen(project, FOLD, views=VIEWS)
    assert wanted(farandole_settings, project) == []
    assert one(database, "SELECT most FROM seen_most") > 0
    assert state(database, project) == ("suspended", "division by zero")
    assert one(database, "SELECT folded_at FROM projection WHERE name = 'seen'") == since
    projections.refold(farandole_settings, projections.discover(project), "seen")
    assert state(database, project) == ("live", None)
    assert one(database, "SELECT sum(n) FROM seen") == one(database, STAGES)


@pytest.mark.parametrize("folder", ["gone", "changed", "the same, later"])
def test_what_an_older_version_folded_without_its_sql_holds_nobody_up(
    folder: str, project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings
) -> None:
    database.execute("UPDATE projection SET tables = NULL, fold = NULL, views = NULL WHERE name = 'seen'")
    core = projections.discover(project)[:1]
    seen(project, DOUBLE if folder == "changed" else FOLD)
    found = projections.discover(project)
    assert register(database, farandole_settings, found if folder == "changed" else core) == []
    assert batches() > 0, "the others are folded"
    assert "its SQL is not known" in one(database, "SELECT error FROM projection WHERE name = 'seen'")
    if folder == "gone":
        projections.drop(farandole_settings, core, "seen")
        assert one(database, "SELECT count(*) FROM projection") == 1
        return
    projections.install(farandole_settings, found)
    batches()
    times = 2 if folder == "changed" else 1
    assert one(database, "SELECT sum(n) FROM seen") == times * one(database, STAGES)
    assert state(database, project) == ("live", None)


def test_a_projector_builds_the_core_that_an_older_version_folded(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings
) -> None:
    """As after a migration from 0.4: the tables are there, the SQL is another one, nothing is known of the old."""
    batches()
    database.execute("UPDATE projection SET tables = NULL, fold = NULL, views = NULL, hash = 'of 0.4'")
    service._register(farandole_settings, projections.discover(project)[:1])
    assert one(database, "SELECT sum(events) FROM job") == one(database, "SELECT count(*) FROM event_log")
    assert state(database, project, "job_state") == ("live", None)


def test_tables_that_somebody_reads_are_not_dropped_while_projectors_wait(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(installing, "TRIES", 1)
    batches()
    core = projections.discover(project)[:1]
    with postgres.connect(farandole_settings) as reader, reader.transaction():
        reader.execute("SELECT * FROM seen")
        with pytest.raises(FarandoleError, match="somebody reads the tables of seen"):
            projections.drop(farandole_settings, core, "seen")
        assert batches() > 0
    projections.drop(farandole_settings, core, "seen")
    assert one(database, "SELECT to_regclass('seen')") is None


@pytest.mark.parametrize("mistake", ["a table", "a reader"])
def test_views_that_cannot_be_replaced_now_are_told_and_hold_nobody_up(
    mistake: str, project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(registered, "TRIES", 1)
    seen(project, FOLD, views=VIEWS)
    assert wanted(farandole_settings, project) == []
    with postgres.connect(farandole_settings) as reader, reader.transaction():
        reader.execute("SELECT * FROM seen_most")
        other = VIEWS.replace("seen_most", "parked") if mistake == "a table" else VIEWS.replace("max", "min")
        seen(project, FOLD, views=other)
        (told,) = wanted(farandole_settings, project)
    assert ('"parked" is not a view' if mistake == "a table" else "somebody reads the old views") in told
    assert batches() > 0
    assert one(database, "SELECT most FROM seen_most") > 0


def test_a_builder_goes_on_after_a_mistake_of_its_own(
    project: Project, database: Connection[Any], farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that ended in silence would leave everything wanted for ever."""
    want(database, projections.discover(project)[1], anew=True)
    calls: list[object] = []

    def mistaken(builder: Builder) -> bool:
        calls.append(builder)
        raise KeyError("a mistake")

    monkeypatch.setattr(background, "AGAIN", 0.01)
    monkeypatch.setattr(Builder, "build_next", mistaken)
    with background.Builds(farandole_settings):
        eventually(lambda: len(calls) > 1)


def test_what_comes_while_a_reader_is_waited_for_is_folded_before_the_projectors_are_stopped(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(building, "AGAIN", 0.01)
    batches()
    said: list[str] = []
    with postgres.connect(farandole_settings) as reader:
        with reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT * FROM seen")
            want(database, projections.discover(project)[1], anew=True)
            builder = threading.Thread(target=build, args=(farandole_settings, lambda _, what: said.append(what)))
            builder.start()
            eventually(lambda: any(what.startswith("waits for a reader: process") for what in said))
            folded = "SELECT folded FROM projection_build"
            before, new = one(database, folded), batches()
            eventually(lambda: one(database, folded) == before + new)
            assert new > 0 and said[-1].startswith("waits for a reader: process")
        builder.join(30)
    assert said[-1] == "is live"
    assert one(database, "SELECT sum(n) FROM seen") == one(database, STAGES)


def test_a_build_takes_as_long_as_it_takes(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings
) -> None:
    """A role's statement_timeout is meant for questions; a piece that it ends would be begun again for ever."""
    batches()
    seen(project, FOLD + "SELECT pg_sleep(0.5) FROM new_events LIMIT 1;")
    wanted(farandole_settings, project)
    with postgres.connect(farandole_settings) as connection:
        connection.execute("SET statement_timeout = '300ms'")
        builder = Builder(farandole_settings, connection, lambda *_: None)
        with builder.alone() as mine:
            assert mine and builder.build_next()
    assert state(database, project) == ("live", None)
