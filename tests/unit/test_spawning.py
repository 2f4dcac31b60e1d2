"""Commands that the tests fork are processes like those that a user starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spawning import ROOT, Forked, run, started

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux alone")


def test_a_command_says_what_it_would_say_and_ends_as_it_would() -> None:
    real = [sys.executable, "-m", "farandole"]
    for words in (["no-such-command"], ["config", "--json"]):
        whole = os.environ | {"COLUMNS": "90", "FARANDOLE_NAMESPACE": "forked"}
        there = subprocess.run([*real, *words], cwd=ROOT, env=whole, capture_output=True, text=True, check=False)
        here = run(words, cwd=ROOT, environment=whole)
        assert (here.returncode, here.stdout, here.stderr) == (there.returncode, there.stdout, there.stderr)


def test_it_is_given_its_folder_its_environment_and_its_stdin_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.farandole]\nflow = "orders"\n')
    os.environ["FARANDOLE_NAMESPACE"] = "mine"
    try:
        told = run(["config", "--json"], cwd=tmp_path, environment={"PATH": os.environ["PATH"]})
    finally:
        del os.environ["FARANDOLE_NAMESPACE"]
    assert '"orders"' in told.stdout, told
    assert "mine" not in told.stdout
    read = run(["submit", "-", "--key", "number"], cwd=tmp_path, environment={}, stdin="no json\n")
    assert read.returncode != 0


@LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_how_a_signal_ends_it_is_told(tmp_path: Path, number: signal.Signals) -> None:
    with (tmp_path / "log").open("wb") as out:
        process = started(["submit", "-"], cwd=ROOT, environment=os.environ, out=out, stdin=subprocess.PIPE)
        assert isinstance(process, Forked)
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        process.send_signal(number)
        assert process.wait(30) == -number
        process.kill()  # of one that has ended: nothing
