"""`farandole demo` on this repository: mails in, four agents as processes, finished jobs out, nothing left running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from farandole.errors import ExitCode
from farandole.settings import Settings
from farandole.testing.flow import environment
from tests.eventually import eventually

ROOT = Path(__file__).parents[2]


def demo(settings: Settings, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "farandole", "demo", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment(settings), "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def of_this_namespace(settings: Settings) -> list[int]:
    """Processes that still run with this test's namespace."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("FARANDOLE_NAMESPACE") == settings.namespace:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_every_mail_of_the_demo_ends_and_the_demo_works_again(farandole_settings: Settings) -> None:
    first = demo(farandole_settings)
    assert first.returncode == 0, first.stdout + first.stderr
    ended, of = re.search(r"(\d+) of (\d+) jobs have ended", first.stderr).groups()  # type: ignore[union-attr]
    assert ended == of
    assert int(ended) >= 38
    assert "blocked" not in first.stdout
    assert "decided by offline rules" in first.stdout
    assert "farandole jobs" in first.stderr
    assert max(map(len, first.stdout.splitlines())) <= 100
    again = demo(farandole_settings)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "nothing ran twice" in again.stderr
    assert of_this_namespace(farandole_settings) == []


def test_a_demo_that_cannot_finish_in_time_says_so_and_leaves_nothing_running(farandole_settings: Settings) -> None:
    ended = demo(farandole_settings, "--timeout", "1")
    assert ended.returncode in (ExitCode.TIMEOUT, ExitCode.OK), ended.stderr
    assert of_this_namespace(farandole_settings) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_a_demo_that_is_interrupted_leaves_nothing_running(
    farandole_settings: Settings, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "farandole", "demo"],
            cwd=ROOT,
            env={**os.environ, **environment(farandole_settings)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    eventually(lambda: len(of_this_namespace(farandole_settings)) >= 6, "demo, projector and four agents run", 60)
    process.send_signal(number)
    assert process.wait(60) == code, log.read_text()
    eventually(lambda: of_this_namespace(farandole_settings) == [], "nothing runs any more", 60)
    assert "Traceback" not in log.read_text()
