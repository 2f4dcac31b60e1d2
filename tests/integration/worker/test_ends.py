"""A worker ends when it is told to, whatever handlers have left behind and whatever stands still."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from farandole.settings import load_settings
from farandole.stack.stack import Stack
from tests.eventually import eventually
from tests.integration.worker.conftest import Stage


@pytest.mark.parametrize("plan", ["swallow", "to_thread", "task", "thread"])
def test_what_a_handler_leaves_behind_does_not_hold_the_worker(stage: Stage, plan: str) -> None:
    """Case K3, with handlers that do not let themselves be cancelled."""
    with stage.agent("careless", FARANDOLE_GRACE_SECONDS="1") as worker:
        stage.submit([("left", plan), ("done", "")])
        eventually(lambda: sorted(stage.handled()) == ["done", "left"], "both begun")
        eventually(lambda: "done" in stage.said(), "one is said")
        worker.signal(signal.SIGTERM)
        assert worker.process.wait(40) == 0, worker.output()
    if plan in ("swallow", "to_thread"):
        assert stage.said() == ["done"], "the other was abandoned"


def processes_of(folder: Path) -> list[int]:
    """The server that keeps its data in `folder`, and its children."""
    main = int((folder / "postmaster.pid").read_text(encoding="utf-8").split()[0])
    children = Path(f"/proc/{main}/task/{main}/children").read_text(encoding="utf-8").split()
    return [main, *map(int, children)]


def test_a_database_that_stands_still_is_an_outage_and_does_not_hold_the_worker(
    farandole_private_stack: Stack, farandole_outages: Stack, tmp_path: Path
) -> None:
    """Its connections stay up and nothing answers: a stalled disk, a stopped machine."""
    endpoints = farandole_private_stack.endpoints
    settings = load_settings(
        kafka_bootstrap_servers=endpoints.kafka_bootstrap_servers,
        database_url=endpoints.database_url,
        namespace="standstill",
    )
    stage = Stage(settings, tmp_path)
    with stage.agent(FARANDOLE_GRACE_SECONDS="1") as worker:
        stage.submit([("before", "")])
        eventually(stage.caught_up, "it works")
        frozen = processes_of(farandole_outages.postgres.folder)
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            stage.log.write("jobs.heard", [(b"k", None)], partition=0)
            worker.signal(signal.SIGTERM)
            code = worker.process.wait(90)
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        assert code in (0, 7), worker.output()
