"""Agents that know a part of another team's event: what fits is read, what does not harms no record."""

from __future__ import annotations

from farandole.errors import ExitCode
from tests.eventually import eventually
from tests.integration.worker.conftest import Stage


def test_a_view_reads_what_another_team_writes_and_one_that_does_not_fit_stops_before_its_first_record(
    stage: Stage,
) -> None:
    stage.submit([("one", ""), ("two", "")])
    with stage.agent("blind", ready=False) as worker:
        assert worker.process.wait(60) == ExitCode.CONFIGURATION, worker.output()
        assert "the event has no field 'wort'; expected one of word, plan, or a default" in worker.output()
    assert stage.log.read("blind.dead") == []
    assert sum(stage.log.committed("blind", "jobs.heard").values()) == 0
    with stage.agent("peek"):
        eventually(lambda: sorted(stage.said()) == ["one", "two"], "both were read")
