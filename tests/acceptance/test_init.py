"""The wheel, alone in an empty environment, makes a project whose own `make test` and `make demo` work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from farandole.errors import ExitCode

ROOT = Path(__file__).parents[2]


def clean_environment(*hidden: str) -> dict[str, str]:
    """What a newcomer's shell has: no virtual environment, no settings."""
    ours = ("FARANDOLE_", "KAFKA_", "DATABASE_", "VIRTUAL_ENV", "PYTEST_", "PYTHON", *hidden)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    folders = [folder for folder in kept["PATH"].split(os.pathsep) if not Path(folder, "farandole").exists()]
    # To pip a false value means that it is not to compile: what is imported is compiled then.
    return kept | {"PATH": os.pathsep.join(folders), "PIP_NO_COMPILE": "0"}


def run(*command: str | Path, cwd: Path) -> str:
    ended = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean_environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{command}:\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}"
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, and `venv/` with nothing but that wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("newcomer")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "dist", ROOT, cwd=folder)
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    (wheel,) = (folder / "dist").glob("farandole-*.whl")
    run(sys.executable, "-m", "pip", "--python", folder / "venv/bin/python", "install", "--quiet", wheel, cwd=folder)
    return folder


@pytest.mark.timeout(600)
def test_the_wheel_alone_makes_a_project_whose_own_tests_and_demo_pass(installed: Path) -> None:
    farandole = installed / "venv/bin/farandole"
    told = run(farandole, "init", "my-flow", cwd=installed)
    assert "make test" in told
    project = installed / "my-flow"
    assert len(list((project / "vendor").glob("farandole-*.whl"))) == 1
    assert "./vendor/farandole-" in (project / "requirements.txt").read_text()
    assert "4 passed" in run("make", "test", cwd=project)
    try:
        shown = run("make", "demo", cwd=project)
        assert "8 of 8 jobs have ended" in shown
        assert "offline rules" in shown
        assert "8 of 8 jobs have ended" in run("make", "demo", cwd=project)  # and works again
        spent = run(project / ".venv/bin/farandole", "jobs", "--status", "failed", "--json", cwd=project)
        assert spent.count("trace_id") == 2
    finally:
        run(project / ".venv/bin/farandole", "down", "--wipe", cwd=project)


def test_a_folder_that_is_not_empty_is_left_alone(installed: Path) -> None:
    (installed / "taken").mkdir()
    (installed / "taken" / "mine.txt").write_text("mine")
    ended = subprocess.run(
        [installed / "venv/bin/farandole", "init", "taken"],
        cwd=installed,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == ExitCode.USAGE
    assert "not empty" in ended.stderr
    assert [path.name for path in (installed / "taken").iterdir()] == ["mine.txt"]
