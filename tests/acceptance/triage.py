"""The inbox triage as it runs in production: four agents and the projector, each a process; to be fed, killed, looked at."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psycopg

from farandole.client import Client, Submission
from farandole.event import Event
from farandole.settings import Settings, load_settings
from farandole.stack.status import Endpoints
from tests.acceptance import checker
from tests.acceptance.picture import Picture, Stage, connect, standing, take
from tests.commands import ROOT, Command, typed
from tests.eventually import eventually
from tests.kafka_log import KafkaLog

AGENTS = ("classify", "enrich", "act", "confirm")
PROJECTOR = "projector"
EVERYONE = (PROJECTOR, *AGENTS)


class Triage:
    """A namespace of its own, and the processes at work in it."""

    def __init__(self, endpoints: Endpoints, folder: Path, **more: str) -> None:
        self.settings: Settings = load_settings(**asdict(endpoints), namespace=f"t{secrets.token_hex(3)}")
        self.folder = folder
        self.more = more
        self.log = KafkaLog(self.settings.brokers, self.settings.namespace)
        self.running: dict[str, Command] = {}
        self._starts = 0

    def start(self, *names: str, root: Path = ROOT) -> None:
        """Start them and return at once; what they say is in the folder."""
        for name in names:
            arguments = ["projector"] if name == PROJECTOR else ["run", f"agents/{name}.py"]
            self._starts += 1
            log = self.folder / f"{self._starts:02}-{name}.log"
            self.running[name] = Command(self.settings, log, *arguments, cwd=root, more=self.more)

    def ready(self, seconds: float = 60) -> None:
        for name, command in self.running.items():
            command.said("projector topics=" if name == PROJECTOR else "ready agent=", seconds=seconds)

    def kill(self, name: str) -> None:
        """kill -9, and reap it."""
        self.running.pop(name).kill()

    def end(self) -> None:
        """Drain all; kill what does not end."""
        for command in self.running.values():
            command.process.terminate()
        for command in self.running.values():
            try:
                command.process.wait(40)
            except subprocess.TimeoutExpired:
                command.kill()
        self.running.clear()

    def farandole(self, *arguments: str | Path) -> str:
        """A command, as a user types it; what it prints."""
        done = typed(self.settings, *arguments)
        assert done.returncode == 0, (
            f"farandole {arguments}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
        return done.stdout

    def submit_file(self, file: Path) -> list[str]:
        """`farandole submit FILE --key message_id`; the jobs' ids."""
        told = self.farandole("submit", file, "--key", "message_id", "--json")
        return [json.loads(line)["trace_id"] for line in told.splitlines()]

    def submit(self, events: Iterable[tuple[str, Event]]) -> list[str]:
        """Submit (key, event) pairs from Python."""

        async def send() -> list[str]:
            async with Client(self.settings) as client:
                return [str(trace) async for trace in client.submit_many(Submission(e, key=key) for key, e in events)]

        return asyncio.run(send())

    def connect(self) -> psycopg.Connection[Any]:
        return connect(self.settings.database, self.settings.schema_name)

    def rows(self, query: str, *given: object) -> list[tuple[Any, ...]]:
        """What plain SQL answers."""
        with self.connect() as database:
            return database.execute(query, given).fetchall()

    def ended(self, jobs: Sequence[str]) -> int:
        """How many of these jobs are done or failed."""
        query = "SELECT count(*) FROM job WHERE outcome IS NOT NULL AND trace_id = ANY(%s::uuid[])"
        return int(self.rows(query, list(jobs))[0][0])

    def settle(self, jobs: Sequence[str], seconds: float) -> None:
        """Wait until these jobs have ended; fails early when a process ends by itself."""
        wanted, deadline = len(set(jobs)), time.monotonic() + seconds
        while (ended := self.ended(jobs)) < wanted:
            self.alive()
            assert time.monotonic() < deadline, f"{ended} of {wanted} jobs ended in {seconds} s; {self.last_words()}"
            time.sleep(0.1)

    def alive(self) -> None:
        """Fail with its last words when a process has ended by itself."""
        for name, command in self.running.items():
            code = command.process.poll()
            assert code is None, f"{name} ended with {code}:\n{command.output()[-3000:]}"

    def last_words(self) -> str:
        return "\n".join(f"{log.name}: {log.read_text()[-600:]}" for log in sorted(self.folder.glob("*.log"))[-8:])

    def quiet(self, stages: Sequence[Stage] = checker.TRIAGE, seconds: float = 30) -> None:
        """Wait until nothing lags. The log is looked at by a new client: an old one may not survive the broker's restart
        (librdkafka 5511)."""
        self.log = KafkaLog(self.settings.brokers, self.settings.namespace)
        with self.connect() as database:
            eventually(
                lambda: not list(checker.caught_up(standing(self.log, database, stages))),
                f"no lag; {self.last_words()}", seconds,
            )  # fmt: skip

    def picture(self, stages: Sequence[Stage] = checker.TRIAGE) -> Picture:
        """Everything on the log and in the tables, once nothing lags."""
        self.quiet(stages)
        with self.connect() as database:
            return take(self.log, database, stages)


@contextmanager
def triage(endpoints: Endpoints, folder: Path, **more: str) -> Iterator[Triage]:
    """A system that runs for the length of a block; `more` are further settings, as variables."""
    system = Triage(endpoints, folder, **more)
    try:
        system.start(*EVERYONE)
        yield system
    finally:
        system.end()
