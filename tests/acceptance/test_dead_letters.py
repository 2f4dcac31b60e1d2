"""What cannot be handled, on a running system: given back to its agent alone, finished, nothing twice; or given up."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farandole.stack.status import Endpoints
from tests.acceptance.mails import mails
from tests.acceptance.triage import EVERYONE, Triage
from tests.commands import ROOT, environment
from tests.eventually import eventually

#: Enrich as a bad deploy left it.
BROKEN = """
from farandole import Agent, Reject
from schemas.jobs import Classified, Enriched

agent = Agent("enrich", inline=True)


@agent.handle
def enrich(mail: Classified) -> Enriched:
    raise Reject(f"nothing is known of {mail.sender}")
"""

#: Another group that reads the same topic: it notes what it is given.
WATCH = """
import os
from pathlib import Path

from farandole import Agent
from schemas.jobs import Classified

agent = Agent("watch", inline=True)


@agent.handle
def watch(mail: Classified) -> None:
    with Path(os.environ["TEST_LEDGER"]).open("a", encoding="utf-8") as out:
        out.write(f"{mail.message_id}\\n")
"""


class Bad(Triage):
    """The triage with a broken enrich, and with another group that watches the topic it reads."""

    def __init__(self, endpoints: Endpoints, folder: Path) -> None:
        self.ledger = folder / "ledger"
        super().__init__(endpoints, folder, TEST_LEDGER=str(self.ledger))
        self.copy = folder / "copy"
        self.copy.mkdir()
        for name in ("agents", "schemas", "projections"):
            shutil.copytree(ROOT / name, self.copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", self.copy)
        (self.copy / "agents/enrich.py").write_text(BROKEN, encoding="utf-8")
        (self.copy / "agents/watch.py").write_text(WATCH, encoding="utf-8")
        self.start(*(name for name in EVERYONE if name != "enrich"))
        self.start("enrich", "watch", root=self.copy)
        self.mended = False
        self.ready()

    def blocked(self, count: int) -> list[str]:
        """The jobs of so many mails, once all are blocked."""
        chosen = itertools.islice(self.mails, count)
        jobs = self.submit(chosen)
        eventually(lambda: self.status(jobs) == {("blocked", 0): count}, f"{count} blocked; {self.last_words()}")
        return jobs

    mails = mails()

    def status(self, jobs: list[str]) -> dict[tuple[str, int], int]:
        """How many of these jobs have which status and run."""
        query = "SELECT status, run, count(*) FROM job_state WHERE trace_id = ANY (%s::uuid[]) GROUP BY status, run"
        return {(status, run): count for status, run, count in self.rows(query, jobs)}

    def mend(self) -> None:
        """Deploy the good enrich."""
        self._deploy(ROOT)
        self.mended = True

    def spoil(self) -> None:
        """Deploy the bad one again, if it was mended."""
        if self.mended:
            self._deploy(self.copy)
        self.mended = False

    def _deploy(self, root: Path) -> None:
        assert self.running.pop("enrich").stop() == 0
        self.start("enrich", root=root)
        self.running["enrich"].said("ready agent=")

    def dead(self, *arguments: str) -> Any:
        return json.loads(self.farandole("dead", *arguments, "--json"))

    def counts(self) -> dict[tuple[str, str], int]:
        return {(one["agent"], one["cause"]): one["letters"] for one in self.dead("list")["counts"]}

    def seen_by_watch(self) -> list[str]:
        eventually(lambda: self.log.lag("watch", "jobs.classified") == 0, "watch has read everything")
        return self.ledger.read_text(encoding="utf-8").split()

    def events(self, jobs: list[str]) -> dict[tuple[str, int], int]:
        """How often each (event type, run) was committed for these jobs, on the topics themselves."""
        found: dict[tuple[str, int], int] = {}
        for topic in ("submitted", "classified", "enriched", "acted", "done", "failed", "dead_lettered", "redriven"):
            for record in self.log.fields(f"jobs.{topic}") if self.log.exists(f"jobs.{topic}") else ():
                if str(record["trace_id"]) in jobs:
                    found[topic, record["run"]] = found.get((topic, record["run"]), 0) + 1
        return found


@pytest.fixture(scope="module")
def started(farandole_stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bad]:
    """One for all tests of the module: each brings jobs of its own."""
    running = Bad(farandole_stack, tmp_path_factory.mktemp("bad"))
    try:
        yield running
    finally:
        running.end()


@pytest.fixture
def system(started: Bad) -> Bad:
    """The same with its enrich broken, whatever the test before has mended."""
    started.spoil()
    return started


def finished(count: int, runs: int) -> dict[tuple[str, int], int]:
    """What lies on the topics when so many jobs were dead-lettered in runs 0, 1, … and are done in the last one."""
    lost = {("dead_lettered", run): count for run in range(runs)} | {
        ("redriven", run + 1): count for run in range(runs)
    }
    first = {(stage, 0): count for stage in ("submitted", "classified")}
    return first | lost | {(stage, runs): count for stage in ("enriched", "acted", "done")}


def ends(jobs: list[str], system: Bad) -> dict[tuple[str, int], int]:
    """The same as found; a mail that is refused is as good as done."""
    found = system.events(jobs)
    for (topic, run), count in list(found.items()):
        if topic == "failed":
            found["done", run] = found.get(("done", run), 0) + found.pop((topic, run)) * bool(count)
    return found


def test_three_letters_given_back_are_finished_once_and_no_other_group_sees_them(system: Bad) -> None:
    """Case K5."""
    jobs = system.blocked(3)
    assert system.counts() == {("enrich", "rejected"): 3}
    seen = system.seen_by_watch()
    assert len(seen) == 3
    system.mend()
    assert system.dead("redrive", "--yes")["redriven"] == 3
    system.settle(jobs, 60)
    assert {run for _, run in system.status(jobs)} == {1}
    assert ends(jobs, system) == finished(3, runs=1)
    assert system.seen_by_watch() == seen
    assert system.log.read("watch.wake") == system.log.read("watch.dead") == []
    assert system.counts() == {}
    assert system.dead("redrive", "--yes") == {"redriven": 0, "left": [], "would": 0}


def test_what_fails_again_is_a_new_letter_of_the_next_run(system: Bad) -> None:
    jobs = system.blocked(2)
    system.dead("redrive", "--yes")
    eventually(lambda: system.status(jobs) == {("blocked", 1): 2}, f"blocked again; {system.last_words()}")
    assert system.counts() == {("enrich", "rejected"): 2}
    assert [letter["run"] for letter in system.dead("list")["letters"]] == [1, 1]
    system.mend()
    system.dead("redrive", "--yes")
    system.settle(jobs, 60)
    assert ends(jobs, system) == finished(2, runs=2)


@pytest.mark.parametrize("place", ["between", "inside"])
def test_a_redrive_killed_and_repeated_finishes_every_job_once(system: Bad, place: str) -> None:
    jobs = system.blocked(25)
    system.mend()
    command = [sys.executable, "-m", "tests.integration.dead.interrupted", place]
    with subprocess.Popen(command, cwd=ROOT, env=environment(system.settings), stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"standing still\n"
        process.kill()
    assert system.dead("redrive", "--yes")["redriven"] == (15 if place == "between" else 25)
    system.settle(jobs, 60)
    assert ends(jobs, system) == finished(25, runs=1)


def test_what_is_discarded_ends_as_failed_and_the_others_wait_on(system: Bad) -> None:
    jobs = system.blocked(3)
    assert system.dead("discard", "--job", jobs[0], "--yes", "--reason", "a test mail")["discarded"] == 1
    eventually(lambda: system.status(jobs) == {("failed", 0): 1, ("blocked", 0): 2}, "one has failed")
    blocked = json.loads(system.farandole("jobs", "--status", "blocked", "--json"))
    assert {job["trace_id"] for job in blocked} == set(jobs[1:])
    shown = system.farandole("dead", "show", jobs[0])
    assert "discarded" in shown
    assert "a test mail" in shown


def test_without_its_dead_letter_topic_an_agent_waits_and_goes_on_by_itself_when_it_is_back(system: Bad) -> None:
    system.blocked(1)
    topic = system.log.topic("enrich.dead")
    system.log.delete("enrich.dead")
    before = sum(system.log.committed("enrich", "jobs.classified").values())
    jobs = system.submit(itertools.islice(system.mails, 3))
    enrich = system.running["enrich"]
    enrich.said(f"topic {topic} is missing", seconds=90)
    assert "`farandole topics`" in enrich.output()
    assert sum(system.log.committed("enrich", "jobs.classified").values()) == before, "its offsets stand still"
    system.farandole("topics")
    eventually(lambda: system.status(jobs) == {("blocked", 0): 3}, "it goes on", 90)
    assert enrich.process.poll() is None
    assert len(system.log.read("enrich.dead")) == 3
