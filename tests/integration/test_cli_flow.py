"""The command line on a real stack: submit, look, run several, reload, and leave no process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil
import pytest

from farandole.errors import ExitCode
from farandole.settings import Settings
from farandole.testing.flow import environment
from tests import spawning
from tests.eventually import eventually
from tests.unit.projects import project

AGENT = """
from farandole import Agent, Fail
from schemas.orders import *
agent = Agent("price")
@agent.handle
async def price(order: Placed) -> Priced:
    if order.amount < 0:
        raise Fail("negative")
    return Priced(number=order.number, total=order.amount * {factor})
"""

BILL = """
from farandole import Agent
from schemas.orders import *
agent = Agent("bill")
@agent.handle
async def bill(order: Priced) -> Billed:
    return Billed(number=order.number)
"""


class Shell:
    """Runs farandole in a project with a test's settings."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self.root = root
        self.environment = {**os.environ, **environment(settings), "FARANDOLE_FLOW": "orders", "COLUMNS": "100"}

    def __call__(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return spawning.run(arguments, cwd=self.root, environment=self.environment, stdin=stdin)

    @contextmanager
    def started(self, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """A long-running command and the file its output goes to; killed at the end if it still runs."""
        log = self.root / f"{arguments[0]}.log"
        with log.open("wb") as out:
            process = popen([sys.executable, "-m", "farandole", *arguments], self.root, self.environment, out)
            try:
                yield process, log
            finally:
                family = children(process)
                process.kill()
                process.wait()
                for child in family:
                    if child.is_running():
                        child.kill()
                print(log.read_text())


def popen(command: list[str], cwd: Path, env: dict[str, str], out: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, cwd=cwd, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
    )


def children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def gone(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


@pytest.fixture
def shell(tmp_path: Path, farandole_settings: Settings) -> Shell:
    found = project(tmp_path)
    (found.agents / "price.py").write_text(AGENT.format(factor=2))
    rows = [{"number": f"n{number}", "amount": number} for number in range(20)]
    (tmp_path / "orders.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Shell(tmp_path, farandole_settings)


def test_a_file_is_submitted_followed_and_shown(shell: Shell) -> None:
    with shell.started("run", "agents/price.py"), shell.started("projector"):
        sent = shell("submit", "orders.jsonl", "--key", "number", "--wait", "--timeout", "0", "--json")
        assert sent.returncode in (ExitCode.TIMEOUT, ExitCode.OK), sent.stderr
        eventually(
            lambda: shell("jobs", "--stage", "priced", "--json").stdout.count("trace_id") == 20, "20 jobs priced"
        )
        again = shell("submit", "orders.jsonl", "--key", "number")
        assert (again.returncode, again.stdout) == (0, "20 submitted\n")
        job = json.loads(shell("job", "--key", "n3", "--json").stdout)
        assert job["data"] == {"placed": {"number": "n3", "amount": 3}, "priced": {"number": "n3", "total": 6}}
        shown = shell("journey", job["trace_id"][:18])
        assert shown.returncode == 0, shown.stderr
        assert max(map(len, shown.stdout.splitlines())) <= 100
        assert all(word in shown.stdout for word in (job["trace_id"], "placed", "priced", "client", "price"))
        assert [row["stage"] for row in json.loads(shell("journey", "--key", "n3", "--json").stdout)] == [
            "placed",
            "priced",
        ]
        assert shell("jobs", "--older", "1d").stdout.strip() == "no jobs"
        assert shell("job", "--key", "nobody").returncode == ExitCode.NOT_FOUND
        assert shell("doctor").returncode == ExitCode.FAILED  # the .avsc files are not written yet
        assert shell("schemas", "write").returncode == 0
        doctor = shell("doctor")
        assert doctor.returncode == 0, doctor.stdout


def test_an_invalid_row_ends_the_submission_with_what_was_sent(shell: Shell) -> None:
    lines = '{"number": "a", "amount": 1}\n{"number": "b", "amount": "many"}\n{"number": "c"}\n'
    ended = shell("submit", "-", "--key", "number", stdin=lines)
    assert ended.returncode == ExitCode.FAILED
    assert "line 2: field 'amount'" in ended.stderr
    assert "1 submitted before it; with the same --key a rerun is safe" in ended.stderr
    skipping = shell("submit", "-", "--key", "number", "--skip-invalid", stdin=lines)
    assert (skipping.returncode, skipping.stdout) == (1, "2 submitted, 1 skipped\n")
    assert "line 2" in skipping.stderr


def test_a_row_of_an_open_pipe_is_submitted_while_the_pipe_stays_open(shell: Shell) -> None:
    command = [sys.executable, "-m", "farandole", "submit", "-", "--key", "number", "--json"]
    given, lines = subprocess.PIPE, [f'{{"number": "{name}", "amount": 1}}\n'.encode() for name in "ab"]
    with subprocess.Popen(command, cwd=shell.root, env=shell.environment, stdin=given, stdout=given) as process:
        assert process.stdin
        process.stdin.write(lines[0])
        process.stdin.flush()
        assert process.stdout
        assert b"trace_id" in process.stdout.readline(), "the first is on the broker before the second is written"
        out, _ = process.communicate(lines[1])
    assert (process.returncode, out.count(b"trace_id")) == (0, 1)


def test_the_projector_needs_no_project(shell: Shell) -> None:
    (shell.root / "pyproject.toml").unlink()
    with shell.started("projector") as (process, log):
        eventually(lambda: "projections=job_state" in log.read_text(), "it folds what comes with the package")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_several_processes_drain_together_on_a_signal(shell: Shell) -> None:
    with shell.started("run", "agents/price.py", "--processes", "2") as (process, log):
        eventually(lambda: log.read_text().count("ready agent=price") == 2, "both are ready")
        family = children(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        eventually(lambda: gone(family), "no child is left")


def test_one_process_that_dies_makes_the_others_drain_and_the_exit_code_tells(shell: Shell) -> None:
    with shell.started("run", "agents/price.py", "--processes", "2") as (process, log):
        eventually(lambda: log.read_text().count("ready agent=price") == 2, "both are ready")
        family = children(process)
        family[0].kill()
        assert process.wait(60) != 0
        eventually(lambda: gone(family), "no child is left")


def test_children_of_a_killed_parent_end_by_themselves(shell: Shell) -> None:
    with shell.started("run", "agents/price.py", "--processes", "2") as (process, log):
        eventually(lambda: log.read_text().count("ready agent=price") == 2, "both are ready")
        family = children(process)
        process.kill()
        eventually(lambda: gone(family), "no child is left", 60)


def test_dev_reloads_a_changed_agent_and_ends_with_all_its_processes(shell: Shell) -> None:
    def total(number: str) -> int | None:
        found = shell("job", "--key", number, "--json")
        data = json.loads(found.stdout)["data"] if found.returncode == 0 else {}
        return data["priced"]["total"] if "priced" in data else None

    with shell.started("dev") as (process, log):
        eventually(lambda: "ready agent=price" in log.read_text(), "the agent is ready")
        assert shell("submit", "-", "--key", "number", stdin='{"number": "a", "amount": 5}\n').returncode == 0
        assert eventually(lambda: total("a"), "a is priced") == 10
        (shell.root / "agents" / "price.py").write_text(AGENT.format(factor=3))
        eventually(lambda: log.read_text().count("ready agent=price") == 2, "the agent is reloaded")
        assert shell("submit", "-", "--key", "number", stdin='{"number": "b", "amount": 5}\n').returncode == 0
        assert eventually(lambda: total("b"), "b is priced") == 15
        (shell.root / "agents" / "bill.py").write_text(BILL)
        eventually(lambda: "ready agent=bill" in log.read_text(), "the new agent is started")
        eventually(
            lambda: shell("jobs", "--stage", "billed", "--json").stdout.count("trace_id") == 2, "both are billed"
        )
        (shell.root / "agents" / "bill.py").unlink()
        (shell.root / "agents" / "price.py").write_text("no python")
        eventually(lambda: "price ended with code 3" in log.read_text(), "the broken agent is reported")
        family = children(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == ExitCode.INTERRUPTED
        eventually(lambda: gone(family), "no child is left")
