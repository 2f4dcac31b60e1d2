"""topics, schemas publish, migrate, projections: each can be run before anything else, and again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from farandole import postgres
from farandole.cli import app
from farandole.errors import ExitCode
from farandole.settings import Settings
from farandole.testing.flow import environment
from tests.unit.projects import project


@pytest.fixture(autouse=True)
def here(tmp_path: Path, farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of flow `orders` as working folder, its settings in the environment."""
    for variable, value in environment(farandole_settings.model_copy(update={"flow": "orders"})).items():
        monkeypatch.setenv(variable, value)
    project(tmp_path, agents={"price": ("Placed", "Priced")})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def farandole(*arguments: str, code: int = 0) -> str:
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == code, ended.output
    return ended.stdout


def rows(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(farandole(*arguments, "--json", code=code))
    return found


def test_topics_are_checked_created_and_checked_again() -> None:
    assert {row["status"] for row in rows("topics", "--check", code=ExitCode.FAILED)} == {"missing"}
    assert {row["status"] for row in rows("topics")} == {"created"}
    assert {row["status"] for row in rows("topics", "--check")} == {"ok"}


def test_drift_fails_the_check_and_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    rows("topics")
    monkeypatch.setenv("FARANDOLE_PARTITIONS", "7")
    drift = [row for row in rows("topics", "--check", code=ExitCode.FAILED) if row["status"] == "drift"]
    assert {(row["setting"], row["declared"], row["found"]) for row in drift} == {("partitions", "7", "6")}
    assert "never alters a topic" in CliRunner().invoke(app, ["topics"]).output


def test_migrating_twice_applies_once(farandole_settings: Settings) -> None:
    assert json.loads(farandole("migrate", "--json"))["applied"]
    assert farandole("migrate") == f"schema {farandole_settings.schema_name}: up to date\n"


def test_projections_are_listed_before_and_after_they_are_folded() -> None:
    assert {row["state"] for row in rows("projections", "list")} == {"new"}
    assert farandole("projections", "refold") == "refolded every projection from 0 events\n"
    assert {row["state"] for row in rows("projections", "list")} == {"live"}
    assert "no projection 'nothing'" in CliRunner().invoke(app, ["projections", "refold", "nothing"]).output


def test_schemas_are_published_with_their_fingerprints() -> None:
    told = farandole("schemas", "publish")
    assert told.count("orders.Placed") == 2
    assert "subject" not in told, "there is no registry"


def test_a_database_that_goes_away_in_the_middle_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise postgres.psycopg.OperationalError("the connection is lost\nmore")

    monkeypatch.setattr("farandole.reading.jobs", gone)
    ended = CliRunner().invoke(app, ["jobs"])
    assert ended.exit_code == ExitCode.UNREACHABLE
    assert ended.stderr == "error: the connection is lost\n"


def test_classes_are_written_from_schemas_on_the_broker() -> None:
    farandole("schemas", "publish")
    text = farandole("schemas", "python", "--from-log", "orders.Placed", "--from-log", "orders.Priced")
    assert 'class Placed(Event, topic="orders.placed", stage="placed", ingest=True):' in text
    assert 'class Priced(Event, topic="orders.priced", stage="priced"):' in text
    ended = CliRunner().invoke(app, ["schemas", "python", "--from-log", "orders.Nothing"])
    assert ended.exit_code == ExitCode.NOT_FOUND
    assert "there is: orders.Billed, orders.JobDeadLettered" in ended.stderr
