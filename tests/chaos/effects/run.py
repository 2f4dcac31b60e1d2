"""One run: jobs through two agents, whose workers die around every step, a stormy API, a mail server that drops some."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from psycopg.rows import dict_row

from farandole.client import Client, Submission
from farandole.settings import load_settings
from farandole.stack.stack import Stack
from farandole.testing.mail_sink import MailSink, Received
from tests.acceptance import picture
from tests.chaos.effects import checker
from tests.chaos.effects.deadly import EACH, FOLDER, POINTS
from tests.chaos.effects.flow.events import Asked
from tests.commands import ROOT, Command, environment
from tests.kafka_log import KafkaLog

_FLOW = Path(__file__).parent / "flow"
_CONCURRENCY = 8
AGENTS = ("judge", "post")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is made of. Limits are micro-dollars; keys as in the table `budget`, without the day."""

    jobs: int = 150
    seed: int = 1
    deaths: int = 2  #: at each point at which workers kill themselves
    kills: int = 4  #: from outside, whatever they are at
    freezes: int = 2  #: beyond their leases and their group sessions
    points: tuple[str, ...] = ()  #: of those deaths; (): all
    frozen: str = ""  #: the agent whose workers are frozen; "": any
    variant: str = "none"
    slow: float = 0.0  #: seconds that each call takes; 0: a storm instead
    drops: bool = True
    limits: dict[str, int] = field(
        default_factory=lambda: {"job": 40_000, "agent/judge": 4_000_000, "day": 6_000_000, "tenant/poor": 60_000}
    )
    seconds: float = 150


@dataclass(slots=True)
class Result:
    """How it went."""

    complaints: list[str] = field(default_factory=list)
    deaths: Counter[str] = field(default_factory=Counter)
    freezes: Counter[str] = field(default_factory=Counter)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        return not self.complaints


def run(stack: Stack, plan: Plan, folder: Path) -> Result:
    """Run it; logs lie in `folder` afterwards."""
    result = Result()
    try:
        with _Run(stack, plan, folder, result).services() as running:
            running.run()
    except Exception as failure:  # noqa: BLE001  a run that could not be made has not held
        result.complaints.append(f"the run itself failed: {failure!r}")
    return result


class _Run:
    def __init__(self, stack: Stack, plan: Plan, folder: Path, result: Result) -> None:
        self.plan, self.folder, self.result = plan, folder, result
        name = f"e{plan.seed}x{time.time_ns() // 1_000_000 % 1_000_000_000}"
        self.settings = load_settings(**asdict(stack.endpoints), namespace=name)
        self.log = KafkaLog(self.settings.brokers, name)
        self.chance = random.Random(plan.seed)
        self.workers: dict[str, Command] = {}
        self.frozen: dict[str, float] = {}
        self.drops: Counter[str] = Counter()
        self.lives = 0
        (folder / "deaths").mkdir()

    @contextmanager
    def services(self) -> Iterator[_Run]:
        """The fake API as a process of its own, and the mail server."""
        rule = f"tests.chaos.effects.storm:{'fair' if self.plan.slow else 'weather'}"
        command = [sys.executable, "-m", "farandole.testing.messages", rule]
        more = environment(self.settings, CHAOS_SEED=str(self.plan.seed), CHAOS_SLOW=str(self.plan.slow))
        api = subprocess.Popen(command, cwd=ROOT, env=more, stdout=subprocess.PIPE, text=True)
        try:
            assert api.stdout
            self.api = api.stdout.readline().strip()
            with MailSink(self._answer) as self.sink:
                yield self
        finally:
            for worker in self.workers.values():
                if worker.process.poll() is None:
                    worker.kill()
            api.kill()
            api.wait()

    def _answer(self, mail: Received) -> str | None:
        """One in twenty is told to come later, one in twenty taken without a word."""
        drawn = self.chance.random() if self.plan.drops else 1.0
        if drawn < 0.05:
            self.drops[mail.message_id] += 1
            return "drop"
        return "451 later" if drawn < 0.1 else None

    def start(self, name: str) -> None:
        self.lives += 1
        agent, limits = name.split("-")[0], self.plan.limits
        more = {
            FOLDER: str(self.folder / "deaths"),
            EACH: str(self.plan.deaths),
            POINTS: " ".join(self.plan.points),
            "ANTHROPIC_API_KEY": "chaos",
            "ANTHROPIC_BASE_URL": self.api,
            "SMTP_URL": self.sink.url,
            "FARANDOLE_MODELS": json.dumps({"cheap": "claude-cheap", "dear": "claude-dear"}),
            "FARANDOLE_PRICES": str(self._prices()),
            "FARANDOLE_BUDGETS": json.dumps(_budgets(limits)),
            "FARANDOLE_LEASE_SECONDS": "2",
            "FARANDOLE_SESSION_TIMEOUT_MS": "6000",
            "FARANDOLE_CLAIMS": "false",
        }
        program = ("-m", "tests.chaos.effects.deadly", self.plan.variant)
        file = (_FLOW / f"{agent}.py").relative_to(ROOT)
        log = self.folder / f"{name}.{self.lives}.log"
        self.workers[name] = Command(self.settings, log, "run", file, more=more, program=program)

    def _prices(self) -> Path:
        file = self.folder / "prices.toml"
        kinds = ("input", "output", "cache_read", "cache_write")
        tables = [
            f'["{model}"]\n' + "".join(f"{kind} = {rate}\n" for kind, rate in zip(kinds, rates, strict=True))
            for model, rates in checker.PRICES.items()
        ]
        file.write_text("\n".join(tables), encoding="utf-8")
        return file

    def run(self) -> None:
        jobs = asyncio.run(self._submit())
        self._duplicate()
        for name in ("judge-0", "judge-1", "post-0", "post-1"):
            self.start(name)
        began = time.monotonic()
        troubles = self._troubles(began)
        while not self._at_rest(len(jobs)):
            if time.monotonic() > began + self.plan.seconds:
                self.result.complaints.append(f"not at rest after {self.plan.seconds:.0f} s")
                break
            self._tick()
            while troubles and troubles[0][0] < time.monotonic():
                self._befall(troubles.pop(0)[1])
            time.sleep(0.1)
        self.result.figures["seconds"] = round(time.monotonic() - began, 1)
        self._end()
        found = self._evidence(jobs)
        self.result.complaints += checker.complaints(found)
        self.result.figures |= _figures(found)

    async def _submit(self) -> dict[str, bool]:
        """Every third job's mail is to be held, every fifth job is a poor tenant's."""
        async with Client(self.settings) as client:
            rows = [
                Submission(Asked(number=n, hold=n % 3 == 0), key=f"job-{n}", tenant="poor" if n % 5 == 0 else None)
                for n in range(self.plan.jobs)
            ]
            ids = [str(trace_id) async for trace_id in client.submit_many(rows)]
        return {trace_id: n % 3 == 0 for n, trace_id in enumerate(ids)}

    def _duplicate(self) -> None:
        """Every tenth event lies on another partition, too: two workers have it at once."""
        records = self.log.read("jobs.asked")
        for partition in range(4):
            there = [
                (r.key, r.value) for n, r in enumerate(records) if n % 10 == 0 and (r.partition + 1) % 4 == partition
            ]
            self.log.write("jobs.asked", there, partition=partition)

    def _troubles(self, began: float) -> list[tuple[float, str]]:
        kinds = ["kill"] * self.plan.kills + ["freeze"] * self.plan.freezes
        return sorted((began + self.chance.uniform(4, 20), kind) for kind in kinds)

    def _befall(self, kind: str) -> None:
        agent = self.plan.frozen if kind == "freeze" else ""
        awake = sorted(name for name in self.workers.keys() - self.frozen.keys() if name.startswith(agent))
        if not awake:
            return
        name = self.chance.choice(awake)
        worker = self.workers[name]
        if worker.process.poll() is not None:
            return
        if kind == "kill":
            worker.kill()
        else:
            worker.signal(signal.SIGSTOP)
            self.frozen[name] = time.monotonic() + 9
            self.result.freezes[name.split("-")[0]] += 1

    def _tick(self) -> None:
        """Who has died begins anew; who has slept long enough wakes."""
        for name, until in list(self.frozen.items()):
            if time.monotonic() > until:
                self.workers[name].signal(signal.SIGCONT)
                del self.frozen[name]
        for name, worker in list(self.workers.items()):
            code = worker.process.poll()
            if code is None:
                continue
            if code == -signal.SIGKILL:
                self.result.deaths[name.split("-")[0]] += 1
            else:
                self.result.complaints.append(f"{name} ended with {code}: …{worker.output().strip()[-400:]}")
            self.start(name)

    def _at_rest(self, jobs: int) -> bool:
        if self.frozen or not all(self.log.exists(f"jobs.{name}") for name in ("judged", "posted")):
            return False
        if any(worker.process.poll() is not None for worker in self.workers.values()):
            return False
        with picture.connect(self.settings.database, self.settings.schema_name) as database:
            busy = "SELECT (SELECT count(*) FROM wait) + (SELECT count(*) FROM step WHERE state = 'leased')"
            row = database.execute(busy).fetchone()
            if row is None or row[0]:
                return False
        read = {"judge": "jobs.asked", "post": "jobs.judged"}
        if any(self.log.lag(agent, topic) for agent, topic in read.items()):
            return False
        if any(self.log.lag(agent, f"{agent}.wake") for agent in AGENTS if self.log.exists(f"{agent}.wake")):
            return False
        return len(self._ended()) >= jobs

    def _ended(self) -> set[str]:
        topics = [name for name in ("jobs.posted", "jobs.failed", "jobs.dead_lettered") if self.log.exists(name)]
        return {str(event["trace_id"]) for topic in topics for event in self.log.fields(topic)}

    def _end(self) -> None:
        for worker in self.workers.values():
            if worker.process.poll() is None:
                worker.process.terminate()
        for name, worker in self.workers.items():
            if worker.process.wait(40) != 0:
                self.result.complaints.append(f"{name} drained with {worker.process.returncode}")

    def _calls(self) -> list[dict[str, Any]]:
        """What the API was asked, when all of it has ended there."""
        deadline = time.monotonic() + 15
        while True:
            with urllib.request.urlopen(f"{self.api}/_calls", timeout=30) as answer:
                calls = json.load(answer)
            if all(call["ended"] is not None for call in calls) or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        return [
            {"key": call["headers"].get("idempotency-key", ""), "model": call["body"]["model"], "usage": call["usage"]}
            for call in calls
        ]

    def _evidence(self, jobs: dict[str, bool]) -> checker.Evidence:
        events = {name: self.log.fields(f"jobs.{name}") if self.log.exists(f"jobs.{name}") else [] for name in _ENDS}
        with (
            picture.connect(self.settings.database, self.settings.schema_name) as database,
            database.cursor(row_factory=dict_row) as cursor,
        ):
            rows = {
                table: cursor.execute(f"SELECT * FROM {table} WHERE {where}").fetchall()
                for table, where in (
                    ("step", "state IS NOT NULL"),
                    ("usage", "true"),
                    ("budget", "true"),
                    ("wait", "true"),
                )
            }
        return checker.Evidence(
            jobs=jobs,
            calls=self._calls(),
            mails=[mail.message_id for mail in self.sink.mails],
            drops=self.drops,
            steps=rows["step"],
            usage=rows["usage"],
            budgets={row["key"]: (row["spent"], row["reserved"]) for row in rows["budget"]},
            limits=self.plan.limits,
            posted=events["posted"],
            failed=events["failed"],
            dead=[(event["agent"], event["cause"], str(event["trace_id"])) for event in events["dead_lettered"]],
            waits=len(rows["wait"]),
            disturbed=self.result.deaths + self.result.freezes,
            concurrency=_CONCURRENCY,
        )


_ENDS = ("posted", "failed", "dead_lettered")


def _budgets(limits: dict[str, int]) -> dict[str, Any]:
    """Limits as the setting takes them, in dollars."""
    made: dict[str, Any] = {}
    for key, limit in limits.items():
        kind, _, name = key.partition("/")
        if name:
            made.setdefault(f"{kind}s", {})[name] = str(limit / 1_000_000)
        else:
            made[kind] = str(limit / 1_000_000)
    return made


def _figures(found: checker.Evidence) -> dict[str, Any]:
    return {
        "jobs": len(found.jobs),
        "calls": len(found.calls),
        "usage rows": len(found.usage),
        "outcomes": dict(Counter(row["outcome"] for row in found.usage)),
        "mails": len(found.mails),
        "mails twice": len(found.mails) - len(set(found.mails)),
        "posted": len({event["trace_id"] for event in found.posted}),
        "over budget": len({event["trace_id"] for event in found.failed}),
        "dead letters": dict(Counter((agent, cause) for agent, cause, _ in found.dead)),
        "begun again": sum(step["begun"] - 1 for step in found.steps),
        "spent": {key: spent for key, (spent, _) in found.budgets.items() if not key.startswith("job/")},
        "disturbed": dict(found.disturbed),
    }
