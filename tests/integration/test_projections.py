"""Projections as folders: what is wrong is named, what changed is refolded, `data` costs nothing until selected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from farandole import migrate, postgres, projections
from farandole.errors import ConfigurationError
from farandole.project import Project, find_project
from farandole.projections.registered import register
from farandole.projector.folds import NotLive
from farandole.settings import Settings
from tests.integration.projection_builds import FOLD, TABLES
from tests.integration.projection_tables import Folder, one, places, prepare
from tests.journeys import Log, facts, written


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "projections" / "seen"
    folder.mkdir(parents=True)
    (folder / "tables.sql").write_text(TABLES)
    (folder / "fold.sql").write_text(FOLD)
    return Project(tmp_path, {})


def test_a_project_without_job_state_gets_the_packaged_one_first(project: Project) -> None:
    assert [found.name for found in projections.discover(project)] == ["job_state", "seen"]


@pytest.mark.parametrize("file", ["tables.sql", "fold.sql"])
def test_a_missing_file_is_named(project: Project, file: str) -> None:
    (project.projections / "seen" / file).unlink()
    with pytest.raises(ConfigurationError, match=rf"projection seen: .*{file} is missing or empty"):
        projections.discover(project)


def test_a_mistake_in_sql_is_named_by_file_and_line(project: Project, farandole_settings: Settings) -> None:
    (project.projections / "seen" / "fold.sql").write_text(FOLD.replace("count(*)", "count(*),\n nonsense"))
    migrate.migrate(farandole_settings)
    with pytest.raises(ConfigurationError, match=r'seen/fold\.sql:3: .*"nonsense" does not exist'):
        projections.install(farandole_settings, projections.discover(project))


def test_a_fold_that_changed_is_refolded_at_the_next_start(project: Project, farandole_settings: Settings) -> None:
    prepare(farandole_settings)
    records = written(Log(farandole_settings), facts(71, 30))
    Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    projections.install(farandole_settings, projections.discover(project))
    with postgres.connect(farandole_settings) as connection:
        before = one(connection, "SELECT sum(n) FROM seen")
        assert before == one(connection, "SELECT count(*) FROM event_log WHERE stage IS NOT NULL")
        (project.projections / "seen" / "fold.sql").write_text(FOLD.replace("count(*)", "2 * count(*)"))
        projections.install(farandole_settings, projections.discover(project))
        assert one(connection, "SELECT sum(n) FROM seen") == 2 * before


def test_views_that_went_with_a_changed_table_come_back(project: Project, farandole_settings: Settings) -> None:
    """The view of another projection, whose own files are as they were."""
    other = project.projections / "whole"
    other.mkdir()
    (other / "tables.sql").write_text(TABLES.replace("seen", "whole"))
    (other / "fold.sql").write_text(FOLD.replace("seen", "whole"))
    (other / "views.sql").write_text(
        "CREATE VIEW both_of_them AS SELECT stage, s.n FROM seen s JOIN whole USING (stage);"
    )
    migrate.migrate(farandole_settings)
    projections.install(farandole_settings, projections.discover(project))
    (project.projections / "seen" / "fold.sql").write_text(FOLD.replace("count(*)", "2 * count(*)"))
    projections.install(farandole_settings, projections.discover(project))
    with postgres.connect(farandole_settings) as connection:
        assert one(connection, "SELECT count(*) FROM both_of_them") == 0


def test_a_view_that_is_named_like_a_table_is_told_of_and_the_old_views_stay(
    project: Project, farandole_settings: Settings
) -> None:
    """Whether the folds change with it or not."""
    migrate.migrate(farandole_settings)
    why = r'seen/views\.sql: "job" is not a view, but a table; choose another name'
    (project.projections / "seen" / "views.sql").write_text("CREATE VIEW most AS SELECT max(n) AS n FROM seen;")
    projections.install(farandole_settings, projections.discover(project))
    (project.projections / "seen" / "views.sql").write_text("CREATE VIEW job AS SELECT max(n) AS n FROM seen;")
    with postgres.connect(farandole_settings) as connection:
        (problem,) = register(connection, farandole_settings, projections.discover(project))
        assert re.search(why, problem)
        (project.projections / "seen" / "fold.sql").write_text(FOLD.replace("count(*)", "2 * count(*)"))
        with pytest.raises(ConfigurationError, match=why):
            projections.install(farandole_settings, projections.discover(project))
        assert one(connection, "SELECT count(*) FROM most") == 1


def test_a_projector_folds_what_is_live_whatever_files_it_has(project: Project, farandole_settings: Settings) -> None:
    prepare(farandole_settings)
    records = written(Log(farandole_settings), facts(72, 30))
    folder = Folder(farandole_settings, "a", places(records, farandole_settings))
    folder.fold(records[:40])
    projections.install(farandole_settings, projections.discover(project))  # the projector has never seen these files
    folder.fold(records[40:])
    with postgres.connect(farandole_settings) as connection:
        assert one(connection, "SELECT sum(n) FROM seen") == one(
            connection, "SELECT count(*) FROM event_log WHERE stage IS NOT NULL"
        )


def test_without_its_core_a_projector_waits(farandole_settings: Settings) -> None:
    prepare(farandole_settings)
    records = written(Log(farandole_settings), facts(73, 3))
    folder = Folder(farandole_settings, "a", places(records, farandole_settings))
    with postgres.connect(farandole_settings) as connection:
        connection.execute("DELETE FROM projection WHERE name = 'job_state'")
        with pytest.raises(NotLive, match="job_state is not live"):
            folder.fold(records)
        assert one(connection, "SELECT count(*) FROM event_log") == 0


def test_data_and_costs_are_gathered_only_when_they_are_selected(farandole_settings: Settings) -> None:
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:

        def plan(columns: str) -> str:
            rows = connection.execute(postgres.script(f"EXPLAIN SELECT {columns} FROM job_state")).fetchall()
            return "\n".join(row[0] for row in rows)

        plain = plan("trace_id, stage, status, attempts, updated_at")
        assert "event_log" not in plain
        assert "usage" not in plain
        assert "event_log" in plan("data")
        assert "usage_job" in plan("trace_id, cost") + plan("calls")  # by its index


def test_the_projections_of_this_repository_are_found_in_order() -> None:
    names = [found.name for found in projections.discover(find_project(Path(__file__)))]
    assert names == ["job_state", "failures", "stage_times", "throughput"]
