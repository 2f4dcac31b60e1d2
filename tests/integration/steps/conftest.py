"""What the steps' tests share: agents that post, what they posted, and the rows of their steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from farandole import postgres
from farandole.settings import Settings
from tests.commands import Command, running
from tests.eventually import eventually
from tests.integration.worker.words import submit
from tests.kafka_log import KafkaLog

AGENTS = Path(__file__).parent / "agents"


class Post:
    """Agents of these tests on a namespace of their own."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.file = folder / "posted"
        self.log = KafkaLog(settings.brokers, settings.namespace)
        self._started = 0

    @contextmanager
    def agent(self, name: str = "poster", ready: bool = True, **more: str) -> Iterator[Command]:
        """The agent in a process of its own."""
        self._started += 1
        more = {"TEST_POSTED": str(self.file), "FARANDOLE_LEASE_SECONDS": "2", **more}
        log = self.folder / f"{name}-{self._started}.log"
        with running(self.settings, log, "run", AGENTS / f"{name}.py", more=more) as command:
            if ready:
                command.said("ready agent=")
            yield command

    def supervise(self, done: Any, name: str = "poster", most: int = 20, **more: str) -> int:
        """Start the agent whenever it has died, until `done()`; how often it died."""
        for deaths in range(most):
            with self.agent(name, ready=False, **more) as command:
                over = command.process.poll
                eventually(lambda over=over: over() is not None or done(), "the end of it all", 60)  # type: ignore[misc]
                if command.process.poll() is None:
                    return deaths
        raise AssertionError(f"it died {most} times:\n{command.output()}")

    def submit(self, words: Iterable[tuple[str, str]]) -> list[str]:
        """(word, plan) pairs, the word being the key; their trace ids."""

        return submit(self.settings, words)

    def posted(self) -> list[tuple[str, str]]:
        """(word, key) of each post that was made, in order."""
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        return [(word, key) for word, key in (line.split() for line in lines)]

    def said(self) -> list[str]:
        return [fields["word"] for fields in self.log.fields("jobs.said")] if self.log.exists("jobs.said") else []

    def dead(self, name: str = "poster") -> list[Any]:
        return self.log.read(f"{name}.dead") if self.log.exists(f"{name}.dead") else []

    def rows(self, columns: str = "state, begun") -> list[tuple[Any, ...]]:
        with postgres.connect(self.settings) as connection:
            query = f"SELECT {columns} FROM step WHERE state IS NOT NULL ORDER BY created_at, event_id, name"
            return connection.execute(query).fetchall()


@pytest.fixture
def post(farandole_settings: Settings, tmp_path: Path) -> Post:
    return Post(farandole_settings, tmp_path)
