"""Projections beside what is not theirs: tables of other schemas, of other projections, and a build that is wanted anew."""

from __future__ import annotations

from collections.abc import Callable
from shutil import rmtree
from typing import Any

import pytest

from farandole import postgres, projections
from farandole.errors import ConfigurationError
from farandole.postgres import Connection
from farandole.project import Project
from farandole.projections import building
from farandole.projections.registered import want
from farandole.settings import Settings
from tests.integration.projection_tables import one
from tests.integration.test_projection_builds import (
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

__all__ = ["batches", "database", "project"]  # fixtures


def test_a_build_that_is_wanted_anew_meanwhile_is_begun_anew(
    project: Project, database: Connection[Any], batches: Callable[[], int], farandole_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Two people refold at once, or one changes views.sql: what was folded until then is not all."""
    monkeypatch.setattr(building, "CHUNK", 50)
    while batches():
        pass
    seen(project, DOUBLE)
    wanted(farandole_settings, project)
    said: list[str] = []

    def meanwhile(_: str, what: str) -> None:
        said.append(what)
        if len(said) == 3:
            want(database, projections.discover(project)[1], anew=True)

    build(farandole_settings, meanwhile)
    assert (said.count("building"), said[-1]) == (2, "is live")
    assert one(database, "SELECT sum(n) FROM seen") == 2 * one(database, STAGES)


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
