"""What `farandole status` shows of real workers: what is in flight, and a lost offset from the stop to the decision."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from farandole import kafka
from farandole.cli import app
from farandole.errors import ExitCode
from farandole.testing.flow import environment
from tests.eventually import eventually
from tests.integration.worker.conftest import Stage


@pytest.fixture(autouse=True)
def surroundings(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in environment(stage.settings).items():
        monkeypatch.setenv(variable, value)


def farandole(*arguments: str, code: int = 0) -> str:
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == code, ended.output
    return ended.stdout


def echo(code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(farandole("status", "--agent", "echo", "--json", code=code))["agents"][0]
    return found


def forgotten(stage: Stage) -> bool:
    """What Kafka does by itself a week after the last member has left; a static one has left when its session ends."""
    group = stage.settings.group("echo")
    try:
        stage.log.admin.delete_consumer_groups([group])[group].result(10)
    except kafka.KafkaException as failure:
        assert kafka.error_of(failure).code() == kafka.KafkaError.NON_EMPTY_GROUP
        return False
    return True


def test_what_a_worker_has_in_flight_is_shown_while_it_works_and_its_row_goes_with_it(stage: Stage) -> None:
    with stage.agent("echo", TEST_SLOW="20", FARANDOLE_GRACE_SECONDS="0.1") as agent:
        stage.submit([(f"w{number}", "slow") for number in range(3)] + [("quick", "say")])

        def busy() -> dict[str, Any]:
            found = echo()
            done = found["workers"][0]["vitals"]["counts"].get("Emitted")
            return found if (found["in_flight"], done) == (3, 1) else {}

        found = eventually(busy, "three in flight, one done")
        assert (found["declared"], found["topic"], found["members"]) == (False, "jobs.heard", 1)
        assert found["lag"]["records"] >= 3 and found["lag"]["seconds"] > 0
        assert (found["workers"][0]["state"], found["rates"]["handled"] > 0) == ("running", True)
        agent.stop()
    assert echo()["workers"] == []


def test_an_agent_that_has_lost_its_offsets_stops_and_goes_on_where_a_person_says(stage: Stage) -> None:
    # Given an agent that has handled something, and whose offsets expire while it is away
    with stage.agent(FARANDOLE_SESSION_TIMEOUT_MS="6000") as agent:
        stage.submit([("before", "say")])
        eventually(stage.caught_up, "it has caught up")
        assert agent.stop() == 0
    stage.submit([("after", "say")])
    eventually(lambda: forgotten(stage), "the group is empty, and its offsets are deleted")

    # Then it does not begin anew, and says why, there and in `status`
    with stage.agent(ready=False) as agent:
        assert agent.process.wait(60) == ExitCode.STOPPED
        assert "is no longer in Kafka" in agent.output() and "farandole gaps accept echo" in agent.output()
    assert any("is no longer in Kafka" in reason for reason in echo(ExitCode.STANDS_STILL)["still"])
    assert stage.handled() == ["before"]

    # And goes on where it is told: from the beginning, which handles the first one again, to the same facts
    farandole("gaps", "accept", "echo", "--at", "earliest")
    assert echo()["still"] == []
    with stage.agent():
        eventually(stage.caught_up, "it has caught up again")
    assert sorted(stage.handled()) == ["after", "before", "before"]
    assert len({fields["event_id"] for fields in stage.log.fields("jobs.said")}) == 2
