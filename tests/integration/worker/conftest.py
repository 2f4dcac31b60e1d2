"""What the worker's tests share: the log of the test's namespace, and events to put on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from farandole.settings import Settings
from tests.commands import Command, running
from tests.integration.worker.words import submit
from tests.kafka_log import KafkaLog

AGENTS = Path(__file__).parent / "agents"


class Stage:
    """An agent of the tests, the log it reads and writes, and a folder for what it leaves."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.log = KafkaLog(settings.brokers, settings.namespace)
        self.ledger = folder / "ledger"
        self._started = 0

    @contextmanager
    def agent(self, *names: str, ready: bool = True, **more: str) -> Iterator[Command]:
        """Agents (default: echo) in a process of their own; the block begins when they are ready."""
        self._started += 1
        names = names or ("echo",)
        log = self.folder / f"{'-'.join(names)}-{self._started}.log"
        files = [AGENTS / f"{name}.py" for name in names]
        more["TEST_LEDGER"] = str(self.ledger)
        with running(self.settings, log, "run", *files, more=more) as command:
            if ready:
                command.said("ready agent=", times=len(names))
            yield command

    def submit(self, words: Iterable[tuple[str, str]]) -> list[str]:
        """Submit (word, plan) pairs, the word being the key; their trace ids."""

        return submit(self.settings, words)

    def handled(self) -> list[str]:
        """The words in the order the handlers met them."""
        return self.ledger.read_text(encoding="utf-8").split() if self.ledger.exists() else []

    def said(self) -> list[str]:
        """The words that were said, as committed."""
        return [fields["word"] for fields in self.log.fields("jobs.said")] if self.log.exists("jobs.said") else []

    def caught_up(self, agent: str = "echo") -> bool:
        return self.log.lag(agent, "jobs.heard") == 0


@pytest.fixture
def stage(farandole_settings: Settings, tmp_path: Path) -> Stage:
    return Stage(farandole_settings, tmp_path)
