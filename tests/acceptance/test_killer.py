"""A record that ends the process it is handled in: it is found, put among the dead letters, and everything else gets done."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from farandole.settings import Settings
from tests.commands import Command, running
from tests.eventually import eventually
from tests.integration.worker.words import submit
from tests.kafka_log import KafkaLog

DEADLY = Path(__file__).parent / "deadly.py"
ECHO = Path(__file__).parents[1] / "integration" / "worker" / "agents" / "echo.py"

WORDS = [f"word {number}" for number in range(50)]
KILLER = WORDS[23]


def send(settings: Settings, plan: str) -> None:
    submit(settings, ((word, plan if word == KILLER else "slow:0.05") for word in WORDS))


def supervised(settings: Settings, log: KafkaLog, folder: Path, most: int, *files: Path) -> int:
    """Run the agents in one process, start it again whenever it dies, until they have read everything; the deaths."""
    agents = [file.stem for file in files]
    for deaths in range(most + 1):
        with running(settings, folder / f"life-{deaths}.log", "run", *files) as command:
            eventually(lambda command=command: over(command) or caught_up(log, agents), "the end of it all", 90)  # type: ignore[misc]
            if not over(command):
                assert command.stop() == 0
                return deaths
    last = (folder / f"life-{deaths}.log").read_text(encoding="utf-8")
    raise AssertionError(f"it died {most + 1} times; the last words were:\n{last}")


def over(command: Command) -> bool:
    return command.process.poll() is not None


def caught_up(log: KafkaLog, agents: list[str]) -> bool:
    return all(log.lag(agent, "jobs.heard") == 0 for agent in agents)


def said(log: KafkaLog, agent: str) -> Counter[str]:
    return Counter(fields["word"] for fields in log.fields("jobs.said") if fields["emitted_by"].split()[0] == agent)


@pytest.fixture
def log(farandole_settings: Settings) -> KafkaLog:
    return KafkaLog(farandole_settings.brokers, farandole_settings.namespace)


def test_a_record_that_kills_is_found_and_all_else_gets_done(
    farandole_settings: Settings, log: KafkaLog, tmp_path: Path
) -> None:
    send(farandole_settings, "exit")
    deaths = supervised(farandole_settings, log, tmp_path, 11, DEADLY)
    assert deaths >= 6, "three to see it, three to be sure"
    the_killer_is_found(log)


def test_an_agent_beside_it_in_the_process_loses_nothing_and_is_not_blamed(
    farandole_settings: Settings, log: KafkaLog, tmp_path: Path
) -> None:
    """More deaths than without it: in the turns of the one the other gets on, which puts the suspicion off."""
    send(farandole_settings, "kill")
    supervised(farandole_settings, log, tmp_path, 20, DEADLY, ECHO)
    the_killer_is_found(log)
    assert said(log, "echo") == Counter(WORDS)
    assert log.read("echo.dead") == []


def the_killer_is_found(log: KafkaLog) -> None:
    (dead,) = log.read("deadly.dead")
    assert dead.fields["word"] == KILLER
    assert dead.header("farandole.dead.cause") == "killed"
    assert "ended 3 times" in dead.header("farandole.dead.error")
    assert said(log, "deadly") == Counter(word for word in WORDS if word != KILLER)
