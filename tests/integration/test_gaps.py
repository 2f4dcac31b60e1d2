"""Gaps are listed and accepted from the command line, an agent's and the projector's."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from farandole import migrate, postgres, topics
from farandole.cli import app
from farandole.errors import ExitCode
from farandole.projector import loop
from farandole.settings import Settings
from farandole.testing.flow import environment
from tests.commands import running
from tests.eventually import eventually
from tests.integration.projection_service import running as projector
from tests.kafka_log import KafkaLog
from tests.unit.projects import project


@pytest.fixture
def here(tmp_path: Path, farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of flow `orders` as working folder; topic orders.placed has offsets 0 to 3."""
    settings = farandole_settings.model_copy(update={"flow": "orders"})
    for variable, value in environment(settings).items():
        monkeypatch.setenv(variable, value)
    project(tmp_path, agents={"price": ("Placed", "Priced")})
    monkeypatch.chdir(tmp_path)
    migrate.migrate(settings)
    topics.ensure(settings, [topics.Wanted("orders.placed", 1)])
    KafkaLog(settings.brokers, settings.namespace).write("orders.placed", [(None, b"x")] * 3)
    return tmp_path


def farandole(*arguments: str, code: int = 0) -> str:
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == code, ended.output
    return ended.stdout


def refusal(*arguments: str, code: int) -> str:
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == code, ended.output
    return " ".join(ended.output.split())


def rows(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(farandole(*arguments, "--json", code=code))
    return found


def do(settings: Settings, statement: str) -> list[Any]:
    with postgres.connect(settings) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_without_gaps_there_is_nothing_to_accept(here: Path) -> None:
    assert farandole("gaps", "list") == "no gaps\n"
    farandole("gaps", "accept", "price", "--at", "earliest", code=ExitCode.NOT_FOUND)
    farandole("gaps", "accept", "price", "--at", "soon", code=ExitCode.USAGE)
    farandole("gaps", "accept", "price", code=ExitCode.USAGE)


def test_a_gap_of_an_agent_is_listed_until_it_is_accepted(here: Path, farandole_settings: Settings) -> None:
    do(
        farandole_settings,
        "INSERT INTO agent_offset (agent, topic, partition, gap) VALUES ('price', 'orders.placed', 0, 'it is gone')",
    )
    do(
        farandole_settings,
        "INSERT INTO worker (agent, slot, host, pid, started_at, vitals)"
        """ VALUES ('price', 0, 'here', 1, now(), '{"state": "stopped", "reason": "gap: it is gone"}')""",
    )
    [gap] = rows("gaps", "list", code=ExitCode.STANDS_STILL)
    assert gap == {"agent": "price", "topic": "orders.placed", "partition": 0, "reason": "it is gone"}
    assert json.loads(farandole("status", "--json", code=ExitCode.STANDS_STILL))["still"]
    [accepted] = rows("gaps", "accept", "price", "--at", "latest")
    assert accepted == {"agent": "price", "topic": "orders.placed", "partition": 0, "offset": 3}
    assert rows("gaps", "list") == []
    assert json.loads(farandole("status", "--json"))["still"] == []


def test_an_agent_can_be_moved_without_a_gap(here: Path, farandole_settings: Settings) -> None:
    said = farandole("gaps", "accept", "price", "orders.placed", "0", "--at", "1")
    assert said == "price goes on with orders.placed [0] at offset 1\n"
    assert do(farandole_settings, "SELECT agent, go_on_at FROM agent_offset") == [("price", 1)]
    farandole("gaps", "accept", "price", "price.wake", "0", "--at", "1", code=ExitCode.NOT_FOUND)


def test_who_is_moved_must_exist_and_read_the_topic(here: Path) -> None:
    said = refusal("gaps", "accept", "pricee", "orders.placed", "0", "--at", "1", code=ExitCode.NOT_FOUND)
    assert "no agent 'pricee', in the project or on the broker; known: price, projector" in said
    said = refusal("gaps", "accept", "price", "orders.priced", "0", "--at", "1", code=ExitCode.USAGE)
    assert "price does not read orders.priced; it reads orders.placed and price.wake" in said


def test_a_gap_that_no_worker_has_met_yet_is_listed_and_accepted(here: Path, farandole_settings: Settings) -> None:
    # Given an agent that was at offset 2, and whose group the broker has forgotten since
    do(
        farandole_settings,
        "INSERT INTO agent_offset (agent, topic, partition, position) VALUES ('price', 'orders.placed', 0, 2)",
    )
    [gap] = rows("gaps", "list", code=ExitCode.STANDS_STILL)
    assert "its offset, 2 when last seen, is no longer in Kafka" in gap["reason"]
    [accepted] = rows("gaps", "accept", "price", "--at", "2")
    assert accepted["offset"] == 2
    assert rows("gaps", "list") == []


def test_a_running_projector_goes_on_when_its_gap_is_accepted(
    here: Path, farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "CHECK", 0.5)
    settings = farandole_settings.model_copy(update={"flow": "orders"})
    log = KafkaLog(settings.brokers, settings.namespace)

    def offset() -> tuple[int | None, str | None] | None:
        found = do(settings, "SELECT next_offset, gap FROM projector_offset WHERE topic = 'orders.placed'")
        return found[0] if found else None

    # Given a projector whose next records are deleted while it is away
    with projector(settings):
        eventually(lambda: offset() == (3, None), "the projector has read all there is")
    log.write("orders.placed", [(None, b"x")] * 4)
    place = TopicPartition(settings.topic("orders.placed"), 0, 5)
    next(iter(log.admin.delete_records([place]).values())).result(10)

    # When it is back it stops there, and goes on by itself once that is accepted
    with projector(settings):
        eventually(lambda: (offset() or (0, None))[1], "the gap is named")
        assert [gap["agent"] for gap in rows("gaps", "list", code=ExitCode.STANDS_STILL)] == ["projector"]
        said = refusal("projector", "skip-gap", "orders.placed", "0", "--at", "4", code=ExitCode.USAGE)
        assert "orders.placed [0] has offsets 5 to 7; 4 is not among them" in said
        farandole("projector", "skip-gap", "orders.priced", "--at", "earliest", code=ExitCode.NOT_FOUND)
        assert [one["offset"] for one in rows("projector", "skip-gap", "orders.placed", "--at", "earliest")] == [5]
        eventually(lambda: offset() == (7, None), "the projector has read the rest")


def test_status_that_watches_ends_cleanly(here: Path, farandole_settings: Settings, tmp_path: Path) -> None:
    settings = farandole_settings.model_copy(update={"flow": "orders"})
    with running(settings, tmp_path / "watch.log", "status", "--watch", "--json", cwd=here) as watching:
        watching.said('"exit_code": 0', times=2)
        watching.signal(signal.SIGINT)
        assert watching.process.wait(20) == 0
    lines = watching.output().splitlines()
    assert {json.loads(line)["exit"] for line in lines} == {"ok"}
