"""What the broker refuses to commit is not lost: the position stays before it, whatever ends the worker."""

from __future__ import annotations

from hashlib import sha256

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType  # type: ignore[attr-defined]

from farandole.errors import ExitCode
from tests.eventually import eventually
from tests.integration.worker.conftest import Stage


def limit(stage: Stage, name: str, size: int) -> None:
    """Let records of a topic have `size` bytes."""
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, stage.log.topic(name), incremental_configs=[entry])
    for future in stage.log.admin.incremental_alter_configs([resource]).values():
        future.result(20)


def test_a_worker_whose_commit_is_refused_ends_and_loses_nothing(stage: Stage) -> None:
    large = "".join(sha256(bytes([number])).hexdigest() for number in range(150))  # nothing that compresses well
    words = [large, *(f"w{number}" for number in range(10))]
    with stage.agent() as worker:
        stage.submit([("before", "")])
        eventually(stage.caught_up, "it works")
        limit(stage, "jobs.said", 2000)
        stage.submit((word, "") for word in words)
        assert worker.process.wait(90) == ExitCode.STOPPED, worker.output()
        assert "the broker refused this commit" in worker.output()
    limit(stage, "jobs.said", 1_000_000)
    with stage.agent():
        eventually(stage.caught_up, "everything handled")
    assert sorted(stage.said()) == sorted(["before", *words])


def test_a_worker_told_to_end_while_it_cannot_write_a_dead_letter_leaves_the_position_where_it_was(
    stage: Stage,
) -> None:
    with stage.agent(FARANDOLE_GRACE_SECONDS="2") as worker:
        stage.submit([("before", "")])
        eventually(stage.caught_up, "it works")
        stage.log.delete("echo.dead")
        before = sum(stage.log.committed("echo", "jobs.heard").values())
        stage.submit([("bad", "reject")])
        worker.said("is missing", seconds=60)
        assert worker.stop() == ExitCode.STOPPED
    assert sum(stage.log.committed("echo", "jobs.heard").values()) == before
    with stage.agent():
        eventually(stage.caught_up, "handled again")
    assert len(stage.log.read("echo.dead")) == 1
