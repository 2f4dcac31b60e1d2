"""Outputs too large for their topic, agents that hand events round for ever, and letters that end the job."""

from __future__ import annotations

from tests.eventually import eventually
from tests.integration.worker.conftest import Stage


def causes(stage: Stage, agent: str = "echo") -> list[str]:
    return [record.header("farandole.dead.cause") for record in stage.log.read(f"{agent}.dead")]


def sizes(stage: Stage) -> list[int]:
    """Characters of what was said."""
    return sorted(map(len, stage.said()))


def test_an_output_is_held_to_what_its_topic_takes_and_a_raised_limit_counts_from_the_next_start(stage: Stage) -> None:
    plans = [("a", "size:1000000"), ("b", "size:1200000"), ("c", "size:10")]
    with stage.agent():
        stage.submit(plans)
        eventually(stage.caught_up, "everything handled")
        assert sizes(stage) == [10, 1_000_000]
        (letter,) = stage.log.read("echo.dead")
        assert (letter.header("farandole.dead.cause"), letter.header("farandole.dead.attempts")) == ("too_large", "1")
        error = letter.header("farandole.dead.error")
        assert error.startswith("jobs.Said has 1,200,")
        assert error.endswith("a record of its topic may have 1,047,564")
        stage.log.configure("jobs.said", "max.message.bytes", "1500000")
    with stage.agent():
        stage.submit([(f"{word} again", plan) for word, plan in plans])
        eventually(stage.caught_up, "everything handled")
    assert sizes(stage) == [10, 10, 1_000_000, 1_000_000, 1_200_000]
    assert causes(stage) == ["too_large"]


def test_a_giant_record_is_dead_lettered_in_a_letter_that_fits(stage: Stage) -> None:
    """1.9 MB with 900 kB of headers, on a topic whose limit was raised."""
    with stage.agent():
        stage.log.configure("jobs.heard", "max.message.bytes", "8000000")
        stage.log.write_large("jobs.heard", b"giant", b"\0" * 1_900_000, [("big", b"h" * 900_000)])
        eventually(stage.caught_up, "the giant handled")
        (letter,) = stage.log.read("echo.dead")
        assert letter.header("farandole.dead.cut_from_bytes") == "1900000"
        assert letter.value == b"\0" * 1_900_000, "the headers were enough to leave out"
        assert letter.key == b"giant"
        stage.submit([("fine", "")])
        eventually(lambda: stage.said() == ["fine"], "the next event handled")


def test_agents_that_hand_an_event_round_for_ever_end_its_job_and_are_named(stage: Stage) -> None:
    with stage.agent("echo", "parrot", FARANDOLE_HOP_LIMIT="40"):
        (job,) = stage.submit([("polly", "")])
        eventually(lambda: stage.log.read("jobs.failed"), "the job has failed")
        eventually(
            lambda: stage.caught_up() and stage.log.lag("parrot", "jobs.said") == 0, "nothing goes round any more"
        )
        (failed,) = stage.log.fields("jobs.failed")
    assert (str(failed["trace_id"]), failed["reason"], failed["hop"]) == (job, "loop", 41)
    assert "40 handlings" in failed["detail"]
    assert "echo → parrot → echo → parrot" in failed["detail"]
    assert max(fields["hop"] for fields in stage.log.fields("jobs.heard")) == 40
    assert stage.log.read("echo.dead") == stage.log.read("parrot.dead") == []


def test_an_agent_may_have_its_dead_letters_end_the_job(stage: Stage) -> None:
    with stage.agent("strict"):
        (job,) = stage.submit([("no", "reject")])
        stage.log.write("jobs.heard", [(b"no event", b"\0")])
        eventually(lambda: len(stage.log.read("jobs.failed")) == 2, "both jobs have failed")
    assert sorted(causes(stage, "strict")) == ["rejected", "undecodable"]
    failed = {str(fields["trace_id"]): fields for fields in stage.log.fields("jobs.failed")}
    told = {str(fields["trace_id"]): fields for fields in stage.log.fields("jobs.dead_lettered")}
    assert failed.keys() == told.keys()
    assert (failed[job]["reason"], failed[job]["detail"].split(":")[0]) == ("dead_lettered", "rejected")
