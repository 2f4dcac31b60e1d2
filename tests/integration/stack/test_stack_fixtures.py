"""The pytest fixtures: which services they take, and that they leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

from farandole.stack import process
from tests.eventually import eventually

SERVICES = ("KAFKA_BOOTSTRAP_SERVERS", "DATABASE_URL", "SCHEMA_REGISTRY_URL", "FARANDOLE_TESTCONTAINERS", "DOCKER_HOST")
PROCESSES = ("kafka", "postgres", "registry", "watchdog")
MODULE = """
import os
from pathlib import Path

import pytest

def test_services(farandole_settings, farandole_namespace, farandole_stack):
    assert farandole_settings.namespace == farandole_namespace
    assert farandole_settings.brokers == farandole_stack.kafka_bootstrap_servers
    print("services", farandole_settings.brokers, farandole_settings.database)

def test_one_more(farandole_registry, farandole_settings):
    assert farandole_settings.schema_registry_url.get_secret_value() == farandole_registry
    print("registry", farandole_registry)

def test_hold(farandole_private_stack):
    Path("folder").write_text(str(farandole_private_stack.data))
    input()

@pytest.mark.parametrize("place", ["one", "other"])
def test_share(farandole_stack, place):
    Path(place).write_text(f"{os.environ['PYTEST_XDIST_WORKER']} {farandole_stack.kafka_bootstrap_servers}")
"""


def pytest_in(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """A pytest run of MODULE in a project of its own."""
    (folder / "pyproject.toml").write_text("[tool.farandole]\n[tool.pytest.ini_options]\n")
    (folder / "test_module.py").write_text(MODULE)
    clean = {key: value for key, value in os.environ.items() if key not in SERVICES}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        text=True,
        env={**clean, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_services_that_are_set_are_used(tmp_path: Path) -> None:
    # Given a Kafka and a Postgres of one's own
    given = {"KAFKA_BOOTSTRAP_SERVERS": "kafka.example:9092", "DATABASE_URL": "postgresql://me@db.example/mine"}

    # Then the tests are given these
    out, _ = pytest_in(tmp_path, "-k", "services", **given).communicate(timeout=60)
    assert "services kafka.example:9092 postgresql://me@db.example/mine" in out


def test_a_registry_that_is_set_is_used_and_one_that_is_not_is_asked_for(tmp_path: Path) -> None:
    # Given services of one's own, with a registry and without
    given = {"KAFKA_BOOTSTRAP_SERVERS": "kafka.example:9092", "DATABASE_URL": "postgresql://me@db.example/mine"}
    registry = {"SCHEMA_REGISTRY_URL": "https://me:secret@registry.example"}

    # Then a test that needs one is given it, or fails with what to set
    out, _ = pytest_in(tmp_path, "-k", "one_more", **given, **registry).communicate(timeout=60)
    assert "registry https://me:secret@registry.example" in out and "1 passed" in out, out
    out, _ = pytest_in(tmp_path, "-k", "one_more", **given).communicate(timeout=60)
    assert "set SCHEMA_REGISTRY_URL beside KAFKA_BOOTSTRAP_SERVERS and DATABASE_URL" in out and "1 error" in out, out


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
    eventually((tmp_path / "folder").exists, "a private stack")
    folder = Path((tmp_path / "folder").read_text())
    assert [name for name in PROCESSES if process.find(process.mark(folder, name))] == ["kafka", "postgres", "watchdog"]

    # When it is killed
    run.send_signal(number)
    run.communicate(timeout=60)

    # Then its services end, and its folder goes
    nothing_is_left_of(folder)


def test_the_workers_of_xdist_share_one_stack_that_ends_with_pytest(tmp_path: Path) -> None:
    # Given a test run of two workers that both ask for services
    run = uuid.uuid4().hex
    out, _ = pytest_in(tmp_path, "-k", "share", "-n", "2", f"--testrunuid={run}").communicate(timeout=120)
    assert "2 passed" in out, out

    # Then both were given the same ones
    one, other = ((tmp_path / place).read_text().split() for place in ("one", "other"))
    assert one[0] != other[0], "two workers"
    assert one[1] == other[1], "one broker"

    # And they end with the run
    nothing_is_left_of(Path(tempfile.gettempdir()) / f"farandole-test-{run}")


def nothing_is_left_of(folder: Path) -> None:
    """Wait for the end of a stack: its processes and its folder."""
    eventually(
        lambda: not any(process.find(process.mark(folder, name)) for name in PROCESSES), "the end of all processes"
    )
    eventually(lambda: not folder.exists(), "the end of the folder")
