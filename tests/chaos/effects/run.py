"""One run: jobs through two agents, whose workers die around every step, a stormy API, a mail server that drops some."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from farandole.settings import load_settings
from farandole.stack.stack import Stack
from farandole.testing.mail_sink import MailSink, Received
from tests.acceptance import picture
from tests.chaos.effects import checker
from tests.chaos.effects.deadly import EACH, FOLDER, POINTS
from tests.chaos.effects.gathering import ended, figures, gathered
from tests.chaos.effects.load import submitted
from tests.chaos.effects.plan import Plan, Result
from tests.commands import ROOT, Command, environment
from tests.kafka_log import KafkaLog

_FLOW = Path(__file__).parent / "flow"
_CONCURRENCY = 8
AGENTS = ("judge", "post")


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
        file = (_FLOW / f"{agent}.py").relative_to(ROOT)
        log = self.folder / f"{name}.{self.lives}.log"
        words = (self.plan.variant, "run", file)
        self.workers[name] = Command(self.settings, log, *words, more=more, module="tests.chaos.effects.deadly")

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
        jobs = submitted(self.settings, self.log, self.plan.jobs, self.plan.twice)
        for name in ("judge-0", "judge-1", "post-0", "post-1"):
            self.start(name)
        began = time.monotonic()
        if not self.plan.deaths:
            for worker in self.workers.values():
                worker.said("assigned ", seconds=120)
        troubles = self._troubles(time.monotonic())
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
        found = gathered(
            self.settings,
            self.log,
            self.api,
            jobs=jobs,
            mails=[mail.message_id for mail in self.sink.mails],
            drops=self.drops,
            limits=self.plan.limits,
            disturbed=self.result.deaths + self.result.freezes,
            concurrency=_CONCURRENCY,
        )
        self.result.complaints += checker.complaints(found)
        self.result.figures |= figures(found)

    def _troubles(self, began: float) -> list[tuple[float, str]]:
        kinds = ["kill"] * self.plan.kills + ["freeze"] * self.plan.freezes
        return sorted((began + self.chance.uniform(3, 20), kind) for kind in kinds)

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
            self.frozen[name] = time.monotonic() + self.plan.nap
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
            waits = database.execute("SELECT count(*) FROM wait").fetchone()
            leased = database.execute("SELECT count(*) FROM step WHERE state = 'leased'").fetchone()
            if waits != (0,) or leased != (0,):
                return False
        read = {"judge": "jobs.asked", "post": "jobs.judged"}
        if any(self.log.lag(agent, topic) for agent, topic in read.items()):
            return False
        if any(self.log.lag(agent, f"{agent}.wake") for agent in AGENTS if self.log.exists(f"{agent}.wake")):
            return False
        return len(ended(self.log)) >= jobs

    def _end(self) -> None:
        for worker in self.workers.values():
            if worker.process.poll() is None:
                worker.process.terminate()
        for name, worker in self.workers.items():
            if worker.process.wait(40) != 0:
                self.result.complaints.append(f"{name} drained with {worker.process.returncode}")


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
