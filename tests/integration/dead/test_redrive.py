"""Dead letters answered: given back raw and whole to their agent alone, each once, whoever interrupts or repeats it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from farandole import ids
from farandole.envelope import Coordinates
from farandole.kafka import Record
from farandole.wake import Wake, unwrap
from tests.commands import ROOT, environment
from tests.eventually import eventually
from tests.integration.dead.conftest import Flow, contents, encoded

#: What a test's records are, as a rule.
WORDS = [f"word {number}" for number in range(25)]

Contents = list[tuple[bytes | None, bytes | None]]


def records(words: list[str] = WORDS) -> Contents:
    return [(word.encode(), encoded(word)) for word in words]


def large_headers(size: int) -> list[tuple[str, bytes | None]]:
    return [("big", b"h" * size)]


def answers(flow: Flow, name: str) -> list[str]:
    """The letters that the events on a topic answer, as committed."""
    return sorted(fields["dead_event_id"] for fields in flow.log.fields(f"jobs.{name}"))


def told(flow: Flow) -> list[str]:
    return sorted(str(fields["event_id"]) for fields in flow.log.fields("jobs.dead_lettered"))


def test_a_letter_is_given_back_as_it_was_and_its_job_runs_again(flow: Flow) -> None:
    odd: list[tuple[str, bytes | None]] = [("a", None), ("a", b"\xff"), ("", b"x")]
    bad: Contents = [(b"no event", b"\x00\xff"), (None, b"keyless"), (b"k", None)]
    flow.letters([*records(["good"]), *bad], headers=odd, partition=0)
    assert flow.status("good") == flow.status("no event") == ("blocked", 0)
    assert "4 redriven" in flow.dead("redrive", "--yes", "--reason", "it is mended")
    heard = flow.log.read("jobs.heard")
    assert flow.woken() == flow.heard()
    for record in flow.wakes():
        found = Record("grump.wake", record.partition, record.offset, 0, record.key, record.value, record.headers)
        kept, wake = unwrap(found, flow.settings.topic)
        first = heard[kept.offset]
        assert (kept.topic, kept.partition, kept.headers) == (flow.settings.topic("jobs.heard"), 0, odd)
        assert (kept.key, kept.value) == (first.key, first.value)
        assert wake == Wake(Coordinates("jobs.heard", 0, first.offset, kept.timestamp_ms), seq=0, run=1)
        assert kept.timestamp_ms > 0
    flow.folded()
    assert flow.status("good") == flow.status("no event") == ("running", 1)
    trace_id = ids.trace_id_of_key("jobs", "good")
    (word,) = [fields for fields in flow.log.fields("jobs.redriven") if str(fields["trace_id"]) == trace_id]
    (letter,) = [fields for fields in flow.log.fields("jobs.dead_lettered") if str(fields["trace_id"]) == trace_id]
    assert (word["causation_id"], word["run"], word["hop"]) == (letter["event_id"], 1, letter["hop"] + 1)
    assert (word["agent"], word["reason"]) == ("grump", "it is mended")


def test_a_second_redrive_finds_nothing_even_where_the_projection_does_not_know_of_the_first(flow: Flow) -> None:
    flow.letters(records())
    for _ in range(2):
        flow.dead("redrive", "--yes")
        flow.rows("DELETE FROM event_log WHERE type = 'jobs.JobRedriven' RETURNING 1")  # as if it was never folded
        flow.rows("UPDATE projector_offset SET next_offset = 0 WHERE topic = 'jobs.redriven' RETURNING 1")
    assert flow.open() == len(WORDS), "the projection takes them for open"
    assert "no dead letters" in flow.dead("redrive", "--yes")
    assert "no dead letters" in flow.dead("list")
    assert flow.woken() == flow.heard()
    assert answers(flow, "redriven") == told(flow)


def test_two_redrives_at_once_give_each_letter_back_once(flow: Flow) -> None:
    flow.letters(records())
    both = [flow.start("redrive", "--yes", "--json") for _ in range(2)]
    said = [json.loads(process.communicate(timeout=60)[0]) for process in both]
    assert sum(each.get("redriven", 0) for each in said) == len(WORDS)
    assert flow.woken() == flow.heard()
    assert answers(flow, "redriven") == told(flow)


@pytest.mark.parametrize("place", ["between", "inside"])
def test_a_redrive_that_is_killed_and_repeated_gives_each_letter_back_once(flow: Flow, place: str) -> None:
    """Killed between two transactions, and inside one whose records are on the broker already."""
    flow.letters(records())
    command = [sys.executable, "-m", "tests.integration.dead.interrupted", place]
    with subprocess.Popen(command, cwd=ROOT, env=environment(flow.settings), stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"standing still\n"
        process.kill()
    before = len(flow.wakes())
    assert before == (10 if place == "between" else 0)
    assert f"{len(WORDS) - before} redriven" in flow.dead("redrive", "--yes")
    assert flow.woken() == flow.heard()
    assert answers(flow, "redriven") == told(flow)


def test_a_discarded_letter_ends_its_job_and_is_not_given_back(flow: Flow) -> None:
    flow.letters(records(["a", "b", "c"]))
    job = ids.trace_id_of_key("jobs", "b")
    assert "1 discarded" in flow.dead("discard", "--yes", "--job", job, "--reason", "nobody misses it")
    flow.folded()
    assert flow.status("b") == ("failed", 0)
    assert flow.status("a") == ("blocked", 0)
    assert "no dead letters" in flow.dead("redrive", "--yes", "--job", job)
    assert "2 redriven" in flow.dead("redrive", "--yes")
    assert flow.woken() == flow.heard(b"a", b"c")
    flow.folded()
    became = {letter["trace_id"]: letter["answer"] for letter in flow.json("list", "--all")["letters"]}
    assert became == {
        ids.trace_id_of_key("jobs", k): a for k, a in (("a", "redriven"), ("b", "discarded"), ("c", "redriven"))
    }


def test_a_job_that_its_letter_has_ended_runs_again_from_the_redrive_on(flow: Flow) -> None:
    flow.letters(records(["a"]), agent="grim")
    assert flow.status("a") == ("failed", 0)
    assert "1 redriven" in flow.dead("redrive", "--agent", "grim", "--yes")
    flow.folded()
    assert flow.status("a") == ("running", 1)
    assert contents(flow.log.read("grim.wake")) == flow.heard()


def test_a_letter_that_holds_a_part_is_given_back_whole_from_its_origin(flow: Flow) -> None:
    """1.9 MB beside 190 kB of headers fit a dead letter with its own headers just not, and a wake just so."""
    value, headers = encoded("x" * 1_896_000), large_headers(199_000)
    with flow.grump():
        flow.log.configure("jobs.heard", "max.message.bytes", "4194304")
        flow.log.write_large("jobs.heard", b"giant", value, headers)
        eventually(lambda: flow.log.read("grump.dead"), "the giant dead-lettered")
    flow.folded()
    (letter,) = flow.log.read("grump.dead")
    assert letter.header("farandole.dead.cut_from_bytes") == str(len(value))
    assert letter.value
    assert value.startswith(letter.value)
    assert "1 redriven" in flow.dead("redrive", "--yes")
    (wake,) = flow.wakes()
    assert (wake.key, wake.value, wake.headers[0]) == (b"giant", value, headers[0])


def test_letters_whose_records_are_gone_are_left_and_named(flow: Flow) -> None:
    flow.letters(records(["a"]))
    flow.log.delete("grump.dead")
    said = flow.dead("redrive", "--yes", code=1)
    assert "its record is gone from grump.dead" in said
    assert "the record is gone from grump.dead" in flow.dead("show", ids.trace_id_of_key("jobs", "a"))
    assert "1 discarded" in flow.dead("discard", "--yes")


def test_without_its_wake_topic_an_agent_is_given_nothing_and_the_command_is_named(flow: Flow) -> None:
    flow.letters(records(["a"]))
    flow.log.delete("grump.wake")
    assert "`farandole topics` creates it" in flow.dead("redrive", "--yes", code=4)
    assert not flow.log.exists("jobs.redriven") or flow.log.read("jobs.redriven") == []


def test_nobody_to_ask_is_an_error_and_a_dry_run_changes_nothing(flow: Flow) -> None:
    flow.letters(records(["a", "b"]))
    assert "--yes" in flow.dead("redrive", code=2)
    shown = flow.dead("redrive", "--dry-run")
    assert "grump  rejected" in shown
    assert "2 would be redriven" in shown
    assert flow.wakes() == []
    assert flow.open() == 2


def test_letters_of_an_agent_that_will_not_come_are_pointed_out(flow: Flow) -> None:
    flow.letters(records(["a"]))
    flow.rows("DELETE FROM worker RETURNING 1")  # the killed one, which would be taken for alive for 15 s
    told = flow.dead("redrive", "--dry-run")
    assert "agent grump is not in the project and no worker of it runs" in told
    with flow.grump():
        assert "not in the project" not in flow.dead("redrive", "--dry-run")
