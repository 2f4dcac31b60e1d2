"""A flow with dead letters: an agent that accepts nothing, the projector, and the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from farandole import ids, postgres
from farandole.contracts.codec import contract
from farandole.envelope import Emitter, begin
from farandole.settings import Settings
from tests.commands import ROOT, Command, environment, running, typed
from tests.eventually import eventually
from tests.integration.worker.words import Heard
from tests.kafka_log import KafkaLog, Logged

HERE = Path(__file__).parent


def encoded(word: str) -> bytes:
    """A record's value, as a submitter of that business key makes it."""
    made, trace_id = contract(Heard, "jobs"), ids.trace_id_of_key("jobs", word)
    return made.encode(begin(trace_id, Emitter("client"), made.writer.name), Heard(word=word))


class Flow:
    """A namespace of its own."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.log = KafkaLog(settings.brokers, settings.namespace)
        self._started = 0

    @contextmanager
    def process(self, *arguments: str | Path, said: str) -> Iterator[Command]:
        self._started += 1
        with running(self.settings, self.folder / f"{self._started}.log", *arguments) as command:
            command.said(said)
            yield command

    def projector(self) -> Any:
        return self.process("projector", said="projector topics=")

    def grump(self, agent: str = "grump") -> Any:
        return self.process("run", HERE / f"{agent}.py", said="ready agent=")

    def letters(self, records: Iterable[tuple[bytes | None, bytes | None]], agent: str = "grump", **more: Any) -> int:
        """Have these records dead-lettered, and folded; how many letters there are in all. The agent has stopped then:
        it leaves alone what is given back to it."""
        given = list(records)
        with self.grump(agent):
            goal = len(self.log.read(f"{agent}.dead")) + len(given)
            self.log.write("jobs.heard", given, **more)
            eventually(lambda: len(self.log.read(f"{agent}.dead")) == goal, "everything dead-lettered")
        self.folded()
        return goal

    def folded(self) -> None:
        """Wait until the projection holds all that is on the topics of the runtime's own events."""

        def look() -> bool:
            names = [f"jobs.{name}" for name in ("dead_lettered", "redriven", "discarded", "failed")]
            there = sum(len(self.log.read(name)) for name in names if self.log.exists(name))
            found = self.rows("SELECT count(*) FROM event_log WHERE topic = ANY (%s)", names)[0][0]
            return bool(found == there)

        eventually(look, "everything folded")

    def rows(self, query: str, *given: object) -> list[tuple[Any, ...]]:
        with postgres.connect(self.settings) as database:
            return database.execute(query, given).fetchall()

    def open(self) -> int:
        """Letters that nobody has answered, as the projection knows them."""
        return int(self.rows("SELECT count(*) FROM dead_letter WHERE answer IS NULL")[0][0])

    def status(self, key: str) -> tuple[str, int]:
        """Status and run of the job of a business key."""
        trace_id = ids.trace_id_of_key("jobs", key)
        status, run = self.rows("SELECT status, run FROM job_state WHERE trace_id = %s", trace_id)[0]
        return status, run

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """`farandole dead …`"""
        return subprocess.Popen(
            [sys.executable, "-m", "farandole", "dead", *arguments], cwd=ROOT, env=environment(self.settings, COLUMNS="110"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def dead(self, *arguments: str, code: int = 0) -> str:
        done = typed(self.settings, "dead", *arguments, COLUMNS="110")
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *arguments: str) -> Any:
        done = typed(self.settings, "dead", *arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def wakes(self) -> list[Logged]:
        return self.log.read("grump.wake")

    def heard(self, *keys: bytes) -> list[tuple[bytes | None, bytes | None]]:
        """Keys and values of what the agent read at first (of these keys, if any are named), sorted."""
        return contents(record for record in self.log.read("jobs.heard") if not keys or record.key in keys)

    def woken(self) -> list[tuple[bytes | None, bytes | None]]:
        """Keys and values of the wakes, sorted."""
        return contents(self.wakes())


def contents(records: Iterable[Logged]) -> list[tuple[bytes | None, bytes | None]]:
    return sorted(((record.key, record.value) for record in records), key=repr)


@pytest.fixture
def flow(farandole_settings: Settings, tmp_path: Path) -> Iterator[Flow]:
    """The projector is at work in it."""
    flow = Flow(farandole_settings, tmp_path)
    with flow.projector():
        yield flow
