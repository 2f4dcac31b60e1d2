"""What the tests of builds share: a project with the projection `seen`, events that are folded beside, a builder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from farandole import migrate, postgres, projections
from farandole.postgres import Connection
from farandole.project import Project
from farandole.projections.building import Builder
from farandole.projections.registered import register
from farandole.projections.states import states
from farandole.settings import Settings
from tests.integration.projection_tables import Folder, places
from tests.journeys import Log, facts, written

TABLES = "CREATE TABLE IF NOT EXISTS seen (\n  stage text PRIMARY KEY,\n  n bigint\n);\n"
FOLD = """INSERT INTO seen AS old
SELECT stage, count(*) FROM new_events WHERE stage IS NOT NULL GROUP BY stage ORDER BY stage
ON CONFLICT (stage) DO UPDATE SET n = old.n + excluded.n;
"""
DOUBLE = FOLD.replace("count(*)", "2 * count(*)")
STAGES = "SELECT count(*) FROM event_log WHERE stage IS NOT NULL"


@pytest.fixture
def project(tmp_path: Path, farandole_settings: Settings) -> Project:
    migrate.migrate(farandole_settings)
    made = Project(tmp_path, {})
    seen(made, FOLD)
    projections.install(farandole_settings, projections.discover(made))
    return made


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    with postgres.connect(farandole_settings) as connection:
        yield connection


@pytest.fixture
def batches(project: Project, farandole_settings: Settings) -> Iterator[Callable[[], int]]:
    """Folds the next few records of a log, as a projector does; how many events were new, 0 at the end."""
    records = written(Log(farandole_settings), facts(90, 120))
    folder = Folder(farandole_settings, "live", places(records, farandole_settings))
    pieces = iter([records[start : start + 40] for start in range(0, len(records), 40)])
    yield lambda: folder.fold(piece).new if (piece := next(pieces, None)) else 0
    folder.store.close()


def seen(project: Project, fold: str, tables: str = TABLES, views: str = "", name: str = "seen") -> None:
    folder = project.projections / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in {"tables.sql": tables, "fold.sql": fold, "views.sql": views}.items():
        (folder / file).write_text(text)


def build(settings: Settings, progress: Callable[[str, str], None] = lambda *_: None) -> None:
    """What a projector's thread does with what is wanted."""
    with postgres.connect(settings) as connection:
        builder = Builder(settings, connection, progress)
        with builder.alone() as mine:
            assert mine
            while builder.build_next():
                pass


def wanted(settings: Settings, project: Project) -> list[str]:
    with postgres.connect(settings) as connection:
        return register(connection, settings, projections.discover(project))


def state(connection: Connection[Any], project: Project, name: str = "seen") -> tuple[str, str | None]:
    (found,) = [one for one in states(connection, projections.discover(project)) if one.name == name]
    return found.state, found.error
