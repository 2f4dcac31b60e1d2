"""Old and new versions of a flow side by side, deployed agent by agent and rolled back, while jobs are in flight."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farandole import postgres
from farandole.client import Client, Submission
from farandole.project import load_file
from farandole.settings import Settings
from tests.commands import Command, environment
from tests.eventually import eventually
from tests.kafka_log import KafkaLog

#: Version 2 has a new optional field (channel, unit), lacks one (note), knows one urgency more, and two of its events have
#: other names.
EVENTS = {
    1: '''"""Orders, as they were at first."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from farandole import Event


class Urgency(StrEnum):
    calm = "calm"
    other = "other"

    __unknown__ = "other"


class Weight(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    grams: int


class Placed(Event, topic="jobs.placed", stage="placed", ingest=True, partitions=2):
    plan: str
    urgency: Urgency
    note: str = "no note"


class Checked(Event, topic="jobs.checked", stage="checked", partitions=2):
    trail: str
    urgency: Urgency
    weight: Weight
    note: str = "no note"


class Shipped(Event, topic="jobs.shipped", stage="shipped", terminal="done"):
    trail: str
''',
    2: '''"""Orders, as they are now."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from farandole import Event


class Urgency(StrEnum):
    urgent = "urgent"
    calm = "calm"
    other = "other"

    __unknown__ = "other"


class Weight(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    grams: int
    unit: str = "g"


class Ordered(Event, topic="jobs.placed", stage="placed", ingest=True, partitions=2, aliases=("Placed",)):
    plan: str
    urgency: Urgency
    channel: str | None = None


class Reviewed(Event, topic="jobs.checked", stage="checked", partitions=2, aliases=("Checked",)):
    trail: str
    urgency: Urgency
    weight: Weight
    channel: str | None = None


class Shipped(Event, topic="jobs.shipped", stage="shipped", terminal="done"):
    trail: str
''',
}

CHECK = '''"""jobs.placed -> jobs.checked."""

import os

from farandole import Agent, Context, Reject, Retry
from schemas.orders import Checked, Placed, Weight

agent = Agent("check", version="VERSION")


@agent.handle
async def check(order: Placed, ctx: Context) -> Checked:
    def weigh() -> Weight:
        with open(os.environ["TEST_LEDGER"], "a") as ledger:
            print(ctx.envelope.trace_id, file=ledger)
        return Weight(grams=7)

    weight = await ctx.once("weigh", weigh)
    if order.plan == "reject VERSION":
        raise Reject("this version cannot")
    if order.plan == "later" and ctx.attempt == 1:
        raise Retry("put off", after="1h")
    trail = f"check VERSION: {order.urgency}, {order.note};"
    return Checked(trail=trail, urgency=order.urgency, weight=weight, note=order.note)
'''

SHIP = '''"""jobs.checked -> jobs.shipped."""

from farandole import Agent
from schemas.orders import Checked, Shipped

agent = Agent("ship", version="VERSION")


@agent.handle
async def ship(order: Checked) -> Shipped:
    return Shipped(trail=f"{order.trail} ship VERSION: {order.urgency}, {order.note}")
'''

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

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.log = KafkaLog(settings.brokers, settings.namespace)
        self.running: dict[str, Command] = {}
        self.submitted: dict[str, int] = {}  #: by which version, by trace id
        self.roots = {version: self._project(version) for version in EVENTS}
        self.classes = {version: load_file(root / "schemas/orders.py") for version, root in self.roots.items()}

    def _project(self, version: int) -> Path:
        root = self.folder / f"version{version}"
        files = {"pyproject.toml": "[tool.farandole]\n", "schemas/orders.py": EVENTS[version]}
        names = {"Placed": "Ordered", "Checked": "Reviewed", "note": "channel"} if version == 2 else {}
        for name, text in (("check", CHECK), ("ship", SHIP)):
            for old, new in ({"VERSION": str(version)} | names).items():
                text = text.replace(old, new)
            files[f"agents/{name}.py"] = text
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            if importlib.util.find_spec("farandole.contracts.unknown") is None:
                text = text.replace('    __unknown__ = "other"', "    @classmethod\n    def _missing_(cls, value): return cls.other")
            (root / name).write_text(text, encoding="utf-8")
        return root

    def start(self, *who: tuple[str, int]) -> None:
        """Agents of a version, each a process; returns when all are ready."""
        for agent, version in who:
            arguments = ["projector"] if agent == "projector" else ["run", f"agents/{agent}.py"]
            name = f"{agent}{version}"
            log, more = self.folder / f"{name}-{len(list(self.folder.iterdir()))}.log", {"TEST_LEDGER": str(self.ledger)}
            self.running[name] = Command(self.settings, log, *arguments, cwd=self.roots[version], more=more)
        for agent, version in who:
            self.running[f"{agent}{version}"].said("projector topics=" if agent == "projector" else "ready agent=")

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

        async def send() -> list[str]:
            async with Client(self.settings) as client:
                rows = [
                    Submission(order, key)
                    for plan in plans
                    for order in (
                        old.Placed(plan=plan, urgency="calm", note="fragile"),
                        new.Ordered(plan=plan, urgency="urgent", channel="web"),
                    )
                ]
                return [str(trace) async for trace in client.submit_many(rows)]

        jobs = asyncio.run(send())
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

    def checked(self) -> None:
        """Wait until all that was submitted is checked; nothing may run that ships it."""
        eventually(lambda: self.log.lag("check", "jobs.placed") == 0, "all is checked", 60)

    def answer(self, version: int) -> None:
        """What was put off is due, what was rejected is given back from that version's project; its check takes both."""
        self.rows("UPDATE wait SET due = now() WHERE woken_at IS NULL RETURNING 1")
        done = subprocess.run(
            [sys.executable, "-m", "farandole", "dead", "redrive", "--yes"], cwd=self.roots[version],
            env=environment(self.settings), capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert "2 redriven" in done.stdout, done.stdout + done.stderr
        eventually(lambda: self.rows("SELECT count(*) FROM wait") == [(0,)], "all was woken", 60)
        eventually(lambda: self.log.lag("check", "check.wake") == 0, "all was handled", 60)


@pytest.fixture
def deploys(farandole_settings: Settings, tmp_path: Path) -> Iterator[Deploys]:
    made = Deploys(farandole_settings, tmp_path)
    try:
        yield made
    finally:
        for command in made.running.values():
            command.kill()


def test_jobs_in_flight_cross_a_deploy_and_a_rollback_both_ways(deploys: Deploys) -> None:
    deploys.start(("projector", 1), ("check", 1), ("ship", 1))
    deploys.until("done", deploys.submit("", ""))
    put_off, rejected = deploys.submit("later"), deploys.submit("reject 1")
    deploys.until("waiting", put_off)
    deploys.until("blocked", rejected)

    deploys.start(("check", 2), ("ship", 2))
    deploys.until("done", deploys.submit(*[""] * 10))
    first, second = deploys.submit("", key="order-7")
    assert first == second, "a key is one job, whichever version submits it"
    deploys.until("done", [first])

    deploys.stop("check1", "ship1", "ship2")
    deploys.answer(2)
    deploys.submit("", "later")
    deploys.until("blocked", deploys.submit("reject 2"))
    deploys.checked()
    deploys.stop("check2")
    rolled_back = deploys.submit("")

    deploys.start(("check", 1), ("ship", 1))
    deploys.answer(1)
    deploys.until("done", [*put_off, *rejected, *rolled_back])
    deploys.until("done", list(deploys.submitted))
    deploys.stop("ship1")
    left_behind = deploys.submit("")
    deploys.checked()
    deploys.stop("check1")

    deploys.start(("check", 2), ("ship", 2))
    deploys.until("done", [*left_behind, *deploys.submit("")])
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
