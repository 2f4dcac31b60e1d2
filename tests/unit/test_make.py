"""What the Makefile, the build machine and pre-commit call is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from farandole.cli import app

ROOT = Path(__file__).parents[2]
COMMANDS = set(get_command(app).commands)  # type: ignore[attr-defined]
MAKEFILES = [ROOT / "Makefile", ROOT / "farandole/templates/flow/Makefile.template"]


@pytest.mark.parametrize("makefile", MAKEFILES, ids=lambda path: path.parent.name)
def test_every_command_of_a_makefile_exists(makefile: Path) -> None:
    called = re.findall(r"\$\(BIN\)/farandole (\w+)", makefile.read_text())
    assert called
    assert set(called) <= COMMANDS


@pytest.mark.parametrize("makefile", MAKEFILES, ids=lambda path: path.parent.name)
def test_without_a_python_it_says_what_is_needed(makefile: Path, tmp_path: Path) -> None:
    shutil.copy(makefile, tmp_path / "Makefile")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "requirements.txt").touch()
    ended = subprocess.run(["make", "test", "PYTHON="], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "no Python 3.11 or newer" in ended.stdout + ended.stderr


def test_the_build_machine_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text()
    subprocess.run(["bash", "-n", script], check=True)


def test_the_hooks_are_those_of_make_test() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    makefile = (ROOT / "Makefile").read_text()
    for hook in hooks:
        assert hook["entry"].removeprefix(".venv/bin/").split(" --")[0] in makefile
