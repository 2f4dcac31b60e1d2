"""`projections new`: what it writes folds as it stands, under names of its own; what cannot be is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from farandole import postgres, projections
from farandole.cli import app
from farandole.errors import ExitCode
from farandole.project import Project
from farandole.projections.starting import create, shipped
from farandole.settings import Settings
from tests import oracle
from tests.integration.projection_tables import Folder, one, places, prepare
from tests.journeys import Log, facts, written


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "pyproject.toml").write_text('[tool.farandole]\nflow = "jobs"\n')
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, {})


def test_what_new_writes_is_folded_as_it_stands(project: Project, farandole_settings: Settings) -> None:
    """The example, a copy under the same name, and a copy of each shipped one beside it."""
    create(project, "seen")
    create(project, "throughput", "throughput")
    for name in shipped():
        create(project, f"my_{name}", name)
    prepare(farandole_settings)
    chosen = facts(81, 20)
    records = written(Log(farandole_settings), chosen)
    Folder(farandole_settings, "a", places(records, farandole_settings)).fold(records)
    happened = oracle.once(fact.happened for fact in chosen)
    with postgres.connect(farandole_settings) as connection:
        assert one(connection, "SELECT sum(events)::int FROM seen") == len(happened)
        assert one(connection, "SELECT sum(events)::int FROM throughput") == len(happened)
        assert one(connection, "SELECT sum(events)::int FROM my_throughput") == len(happened)
        stages = sum(counts.whole for counts in oracle.stage_counts(happened, {}).values())
        assert one(connection, "SELECT sum(events)::int FROM my_stage_times_stage_durations") == stages
        ends = sum(event.outcome in ("failed", "blocked") for event in happened)
        assert one(connection, "SELECT sum(times)::int FROM my_failures") == ends
        assert one(connection, "SELECT count(*) FROM seen_today") == 0  # those events are of another day
        assert one(connection, "SELECT count(*) FROM projection WHERE error IS NOT NULL") == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["Seen"], "'Seen' is no name of a projection; expected at most 30 lower-case letters, digits and _"),
        (["../seen"], "'../seen' is no name of a projection"),
        (["s" * 31], "expected at most 30"),
        (["order"], "'order' is a word of SQL"),
        (["event_log"], "there is a table or view 'event_log' already"),
        (["new_events"], "there is a table or view 'new_events' already"),
        (["job_state"], "there is a table or view 'job_state' already"),
        (["there"], "projections/there is there already; nothing was written"),
        (["mine", "--like", "nothing"], "no shipped projection 'nothing'; there are failures, stage_times, throughput"),
        (["mine", "--like", "job_state"], "no shipped projection 'job_state'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence_and_nothing_is_written(
    arguments: list[str], told: str, project: Project
) -> None:
    create(project, "there")
    ended = CliRunner().invoke(app, ["projections", "new", *arguments])
    assert ended.exit_code == ExitCode.USAGE
    assert told in " ".join(ended.stderr.split())
    assert [folder.name for folder in project.projections.iterdir()] == ["there"]


def test_a_table_of_another_projection_is_not_taken_over(project: Project) -> None:
    create(project, "mine", "throughput")
    ended = CliRunner().invoke(app, ["projections", "new", "mine_hour"])
    assert "there is a table or view 'mine_hour' already" in " ".join(ended.stderr.split())


def test_new_says_what_it_wrote_and_what_comes_next(project: Project) -> None:
    ended = CliRunner().invoke(app, ["projections", "new", "mine", "--like", "failures"])
    assert ended.exit_code == 0
    assert [line for line in ended.stdout.splitlines() if line.startswith("wrote")] == [
        f"wrote projections/mine/{file}.sql" for file in ("tables", "fold", "views")
    ]
    assert "farandole projections refold mine" in ended.stdout
    assert "failures" not in projections.read(project.projections / "mine").fold
