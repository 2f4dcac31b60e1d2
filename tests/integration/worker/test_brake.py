"""A broken deploy does not empty its topic into the dead letters: the agent stops taking, says why, and waits for a person."""

from __future__ import annotations

from farandole.errors import ExitCode
from tests.eventually import eventually
from tests.integration.worker.conftest import Stage
from tests.integration.worker.test_guarantees import encoded

#: The agent `strict` stops at the third dead letter in a row.
PLANS = [*["reject", ""] * 3, *["reject"] * 3, *[""] * 20]


def test_an_agent_with_its_brake_on_takes_nothing_more_and_goes_on_after_a_restart(stage: Stage) -> None:
    words = [f"{number:02}" for number in range(len(PLANS))]
    with stage.agent("strict") as agent:
        records = [(b"k", encoded(word, plan)) for word, plan in zip(words, PLANS, strict=True)]
        stage.log.write("jobs.heard", records, partition=0)
        agent.said("braked agent=strict: 3 events in a row were dead-lettered, most of them (3) as rejected")
        assert "`farandole dead list --agent strict`" in agent.output()
        eventually(lambda: len(stage.log.read("strict.dead")) == 6, "what was finished is committed")
        assert stage.log.committed("strict", "jobs.heard")[0] <= 9 + 1  # with the transaction's marker
        assert agent.process.poll() is None
        assert agent.stop() == ExitCode.STOPPED
    assert sorted(stage.said()) == ["01", "03", "05"], "nothing behind the third letter was handled"
    with stage.agent("strict"):
        eventually(lambda: stage.caught_up("strict"), "the rest handled")
    assert sorted(stage.said()) == ["01", "03", "05", *words[9:]]
    assert len(stage.log.read("strict.dead")) == 6
