"""`farandole demo` as a newcomer types it: in a copy of the project that has never run, with a stack of its own."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.acceptance.test_init import clean_environment
from tests.commands import ROOT

#: Not in a fresh clone.
MADE_HERE = (".git", ".venv", ".farandole", ".*_cache", "__pycache__", "dist", "build", "node_modules")


class Newcomer:
    """A copy of the project, a terminal, and what runs because of what was typed there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mark = uuid.uuid4().hex
        self.environment = {**clean_environment(), "NEWCOMER": self.mark, "TERM": "xterm-256color", "COLUMNS": "120"}

    def types(self, *arguments: str) -> str:
        """A command in a terminal; all that it shows, without the colours. It must end well."""
        here, there = pty.openpty()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "farandole", *arguments], cwd=self.root, env=self.environment, stdin=there,
                stdout=there, stderr=there, start_new_session=True,
            )  # fmt: skip
            os.close(there)
            shown = b"".join(iter(lambda: _read(here), b""))
            assert process.wait(30) == 0, shown.decode(errors="replace")[-3000:]
        finally:
            os.close(here)
        return _plain(shown.decode())

    def pipes(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same into files, as a script would."""
        return subprocess.run(
            [sys.executable, "-m", "farandole", *arguments], cwd=self.root, env=self.environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip

    def processes(self) -> set[str]:
        """The names of what still runs."""
        found = set()
        for process in psutil.process_iter():
            try:
                if process.environ().get("NEWCOMER") == self.mark or str(self.root) in " ".join(process.cmdline()):
                    found.add(process.name())
            except psutil.Error:
                continue
        return found


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    root = tmp_path_factory.mktemp("clone") / "farandole"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*MADE_HERE))
    someone = Newcomer(root)
    yield someone
    someone.pipes("down", "--wipe")


def test_the_first_demo_starts_everything_shows_the_jobs_and_one_journey_and_ends(newcomer: Newcomer) -> None:
    shown = newcomer.types("demo")
    assert "Kafka and Postgres are up" in shown
    ended, of = re.search(r"(\d+) of (\d+) jobs have ended", shown).groups()  # type: ignore[union-attr]
    assert int(ended) == int(of) >= 38
    assert "offline rules" in shown
    assert all(word in shown for word in ("done", "failed")), "the table of jobs"
    assert all(stage in shown for stage in ("submitted", "classified", "enriched", "acted")), "one journey"
    for command in ("farandole jobs", "farandole journey", "farandole graph", "farandole dev", "farandole down"):
        assert command in shown, "what to type next"
    assert "Traceback" not in shown
    assert newcomer.processes() <= {"java", "postgres"}, "the stack alone is left, for the next command"
    assert newcomer.processes()


def test_the_second_demo_finds_the_same_jobs_and_what_it_says_to_type_works(newcomer: Newcomer) -> None:
    again = newcomer.pipes("demo")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "nothing ran twice" in again.stderr
    assert "offline rules" in again.stdout
    assert "\x1b" not in again.stdout + again.stderr, "no colours into a pipe"
    assert newcomer.processes() <= {"java", "postgres"}
    listed = newcomer.pipes("jobs", "--status", "done")
    job = re.search(r"\b[0-9a-f]{8}\b", listed.stdout)
    assert job, listed.stdout
    journey = newcomer.pipes("journey", job.group())
    assert (journey.returncode, "classified" in journey.stdout) == (0, True), journey.stderr
    assert newcomer.pipes("graph").returncode == 0


def test_down_with_wipe_leaves_neither_a_process_nor_data(newcomer: Newcomer) -> None:
    assert newcomer.pipes("down", "--wipe").returncode == 0
    assert newcomer.processes() == set()
    left = [path.name for path in (newcomer.root / ".farandole").iterdir()]
    assert left in ([], ["stack.lock"])


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
