"""The pytest fixtures: which services they take, and that they leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from farandole.stack import process
from tests.integration.stack.checkouts import wait_until

SERVICES = ("KAFKA_BOOTSTRAP_SERVERS", "DATABASE_URL", "FARANDOLE_TESTCONTAINERS", "DOCKER_HOST")
MODULE = """
from pathlib import Path

def test_services(farandole_settings, farandole_namespace, farandole_stack):
    assert farandole_settings.namespace == farandole_namespace
    assert farandole_settings.brokers == farandole_stack.kafka_bootstrap_servers
    print("services", farandole_settings.brokers, farandole_settings.database)

def test_hold(farandole_private_stack):
    Path("folder").write_text(str(farandole_private_stack.data))
    input()
"""


def pytest_in(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """A pytest run of MODULE in a project of its own."""
    (folder / "pyproject.toml").write_text("[tool.farandole]\n[tool.pytest.ini_options]\n")
    (folder / "test_module.py").write_text(MODULE)
    clean = {key: value for key, value in os.environ.items() if key not in SERVICES}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", *arguments], cwd=folder, text=True,
        env={**clean, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )


def test_services_that_are_set_are_used(tmp_path: Path) -> None:
    # Given a Kafka and a Postgres of one's own
    given = {"KAFKA_BOOTSTRAP_SERVERS": "kafka.example:9092", "DATABASE_URL": "postgresql://me@db.example/mine"}

    # Then the tests are given these
    out, _ = pytest_in(tmp_path, "-k", "services", **given).communicate(timeout=60)
    assert "services kafka.example:9092 postgresql://me@db.example/mine" in out


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"KAFKA_BOOTSTRAP_SERVERS": "kafka.example:9092"}, "set both KAFKA_BOOTSTRAP_SERVERS and DATABASE_URL"),
        ({"FARANDOLE_TESTCONTAINERS": "1", "DOCKER_HOST": "tcp://127.0.0.1:1"}, "no Docker engine answers"),
        ({"XDG_CACHE_HOME": "{empty}", "MAVEN_REPOSITORY_URL": "http://127.0.0.1:1"}, "no local stack"),
    ],
    ids=["half", "no_docker", "no_stack"],
)
def test_services_that_cannot_be_had_fail_the_tests_with_the_reason(
    tmp_path: Path, environment: dict[str, str], sentence: str
) -> None:
    filled = {variable: value.format(empty=tmp_path) for variable, value in environment.items()}
    filled["TMPDIR"] = str(tmp_path)
    run = pytest_in(tmp_path, "-k", "services", **filled)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 1 and sentence in out, out
    assert "skipped" not in out
    assert list(tmp_path.glob("farandole-test-*")) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["sigkill", "ctrl_c"])
def test_a_pytest_that_is_killed_leaves_no_stack_behind(tmp_path: Path, number: signal.Signals) -> None:
    # Given a test run in the middle of a test with a private stack
    run = pytest_in(tmp_path, "-k", "hold")
    wait_until((tmp_path / "folder").exists, "a private stack")
    folder = Path((tmp_path / "folder").read_text())
    names = ("kafka", "postgres", "watchdog")
    assert all(process.find(process.mark(folder, name)) for name in names)

    # When it is killed
    run.send_signal(number)
    run.communicate(timeout=60)

    # Then its services end, and its folder goes
    wait_until(lambda: not any(process.find(process.mark(folder, name)) for name in names), "the end of all processes")
    wait_until(lambda: not folder.exists(), "the end of the folder")
