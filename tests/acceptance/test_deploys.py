"""Old and new versions of a flow side by side, deployed agent by agent and rolled back, while jobs are in flight."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farandole import postgres, redrive
from farandole.client import Client, Submission
from farandole.dead import Chosen
from farandole.project import load_file
from farandole.settings import Settings
from tests.acceptance.orders import project
from tests.commands import Command
from tests.eventually import eventually
from tests.kafka_log import KafkaLog

#: Where a registry is set: under the topic's subject it would refuse events of another name.
SUBJECTS = "topic-record"

#: What the handlers of each version see, by who submitted, who checked and who shipped.
TRAILS = {
    (1, 1, 1): "check 1: calm, fragile; ship 1: calm, fragile",
    (1, 1, 2): "check 1: calm, fragile; ship 2: calm, None",
    (1, 2, 1): "check 2: calm, None; ship 1: calm, no note",
    (1, 2, 2): "check 2: calm, None; ship 2: calm, None",
    (2, 1, 1): "check 1: other, no note; ship 1: other, no note",
    (2, 1, 2): "check 1: other, no note; ship 2: other, None",
    (2, 2, 1): "check 2: urgent, web; ship 1: other, no note",
    (2, 2, 2): "check 2: urgent, web; ship 2: urgent, web",
}


class Deploys:
    """Both versions of the flow as projects of their own, in one namespace, and who runs of them."""

    def __init__(self, settings: Settings, folder: Path, loop: asyncio.Runner) -> None:
        self.settings = settings
        self.folder = folder
        self.loop = loop
        self.client = Client(settings)
        self.log = KafkaLog(settings.brokers, settings.namespace)
        self.running: dict[str, Command] = {}
        self.submitted: dict[str, int] = {}  #: by which version, by trace id
        self.roots = {version: project(folder, version) for version in (1, 2)}
        self.classes = {version: load_file(root / "schemas/orders.py") for version, root in self.roots.items()}

    def start(self, version: int, *processes: str) -> None:
        """Processes of a version, each the projector or agents ("check ship"); returns when all are ready."""
        for name in processes:
            arguments = ["projector"] if name == "projector" else ["run", *(f"agents/{it}.py" for it in name.split())]
            log = self.folder / f"{name} {version} {len(list(self.folder.iterdir()))}.log"
            more = {
                "TEST_LEDGER": str(self.ledger),
                "FARANDOLE_SESSION_TIMEOUT_MS": "6000",
                "FARANDOLE_SUBJECTS": SUBJECTS,
            }
            self.running[f"{name} {version}"] = Command(
                self.settings, log, *arguments, cwd=self.roots[version], more=more
            )
        for name in processes:
            what = "projector topics=" if name == "projector" else "ready agent="
            self.running[f"{name} {version}"].said(what, times=len(name.split()))

    def stop(self, *names: str) -> None:
        """Drain them, all at once."""
        commands = [self.running.pop(name) for name in names]
        for command in commands:
            command.process.terminate()
        assert [command.process.wait(40) for command in commands] == [0] * len(commands)

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    def submit(self, *plans: str, key: str | None = None) -> list[str]:
        """Each plan once from a producer of each version, which says all that its version can say; the jobs' ids."""
        old, new = self.classes[1], self.classes[2]

        rows = [
            Submission(order, key)
            for plan in plans
            for order in (
                old.Placed(plan=plan, urgency="calm", note="fragile"),
                new.Ordered(plan=plan, urgency="urgent", channel="web"),
            )
        ]

        async def send() -> list[str]:
            return [str(trace) async for trace in self.client.submit_many(rows)]

        jobs = self.loop.run(send())
        for place, job in enumerate(jobs):
            self.submitted.setdefault(job, 1 + place % 2)
        return jobs

    def rows(self, query: str, *given: object) -> list[tuple[Any, ...]]:
        with postgres.connect(self.settings) as connection:
            return connection.execute(query, given).fetchall()

    def until(self, status: str, jobs: list[str]) -> None:
        """Wait until these jobs have a status."""
        query = "SELECT count(*) FROM job_state WHERE status = %s AND trace_id = ANY(%s::uuid[])"

        def look() -> bool:
            for name, command in self.running.items():
                assert command.process.poll() is None, f"{name} ended: {command.output()[-2000:]}"
            return self.rows(query, status, jobs) == [(len(set(jobs)),)]

        eventually(look, f"{status}: {jobs}", 60)

    def sharing(self, name: str) -> None:
        """Wait until this process has partitions of both topics; whoever had all of them keeps some."""
        output = self.running[name].output
        for topic in ("jobs.placed", "jobs.checked"):
            eventually(lambda t=topic: re.search(rf"assigned .*{t} ", output()), f"a share of {topic}")  # type: ignore[misc]

    def checked(self) -> None:
        """Wait until all that was submitted is checked; nothing may run that ships it."""
        eventually(lambda: self.log.lag("check", "jobs.placed") == 0, "all is checked", 60)

    def answer(self) -> None:
        """What was put off is due, what was rejected is given back; wait until whatever version runs has taken it."""
        self.rows("UPDATE wait SET due = now() WHERE woken_at IS NULL RETURNING 1")
        with redrive.answering(self.settings) as answers:
            assert sum(answers.redrive(answers.open(Chosen()))) == 2
            assert answers.left == []
        eventually(lambda: self.rows("SELECT count(*) FROM wait") == [(0,)], "all was woken", 60)
        eventually(lambda: self.log.lag("check", "check.wake") == 0, "all was handled", 60)


@pytest.fixture
def deploys(farandole_settings: Settings, tmp_path: Path) -> Iterator[Deploys]:
    with asyncio.Runner() as loop:
        made = Deploys(farandole_settings.model_copy(update={"subjects": SUBJECTS}), tmp_path, loop)
        try:
            yield made
        finally:
            for command in made.running.values():
                command.kill()
            loop.run(made.client.close())


def test_jobs_in_flight_cross_a_deploy_and_a_rollback_both_ways(deploys: Deploys) -> None:
    deploys.start(1, "projector", "check", "ship")
    put_off, rejected = deploys.submit("later"), deploys.submit("reject 1")
    deploys.until("done", deploys.submit("", ""))
    deploys.until("waiting", put_off)
    deploys.until("blocked", rejected)

    deploys.stop("ship 1")
    checked_by_1 = deploys.submit("")
    deploys.checked()
    deploys.stop("check 1")
    deploys.start(2, "check", "ship")
    deploys.answer()
    deploys.until("done", [*put_off, *rejected, *checked_by_1, *deploys.submit("")])

    deploys.stop("ship 2")
    put_off, rejected, checked_by_2 = deploys.submit("later"), deploys.submit("reject 2"), deploys.submit("")
    deploys.until("blocked", rejected)
    deploys.checked()
    deploys.stop("check 2")
    placed = deploys.submit("")
    deploys.start(1, "check ship")  # rolled back
    deploys.answer()
    deploys.until("done", [*put_off, *rejected, *checked_by_2, *placed])

    deploys.start(2, "check ship")
    deploys.sharing("check ship 2")
    both = deploys.submit(*[""] * 25)  # so many that no partition is left without
    first, second = deploys.submit("", key="order-7")
    assert first == second, "a key is one job, whichever version submits it"
    deploys.until("done", [*both, first])
    for stage in ("checked", "shipped"):
        query = "SELECT DISTINCT emitted_by FROM event_log WHERE stage = %s AND trace_id = ANY(%s::uuid[])"
        assert len(deploys.rows(query, stage, both)) == 2, "both versions were at work"
    whole(deploys, first)


def whole(deploys: Deploys, twice: str) -> None:
    """Every job is done and whole, each stage once; only what was rejected on purpose was ever blocked."""
    seen = set()
    stages = "SELECT array_agg(type ORDER BY hop) FROM journey WHERE trace_id = s.trace_id AND stage IS NOT NULL"
    query = f"SELECT trace_id::text, status, parked, conflicts, data->'shipped'->>'trail', ({stages}) FROM job_state s"
    rows = deploys.rows(query)
    assert {row[0] for row in rows} == set(deploys.submitted)
    for job, status, parked, conflicts, trail, types in rows:
        check, ship = map(int, re.findall(r"(?:check|ship) (\d)", trail))
        by = (deploys.submitted[job], check, ship)
        assert (status, parked, conflicts, trail) == ("done", 0, int(job == twice), TRAILS[by])
        placed, checked = ("Placed", "Ordered")[by[0] - 1], ("Checked", "Reviewed")[check - 1]
        assert types == [f"jobs.{placed}", f"jobs.{checked}", "jobs.Shipped"]
        seen.add(by)
    assert seen == TRAILS.keys()
    assert deploys.rows("SELECT count(*) FROM event_log WHERE type = 'jobs.JobDeadLettered'") == [(4,)]
    weighed = deploys.ledger.read_text().split()
    assert sorted(weighed) == sorted(deploys.submitted), "each step has run once"
