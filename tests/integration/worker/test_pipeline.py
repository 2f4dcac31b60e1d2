"""Many events in flight inside a partition: what is slow delays only itself, what was committed is never handled again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from farandole import postgres, topics
from farandole.agent import load_agent
from tests.commands import ROOT
from tests.eventually import eventually
from tests.integration.worker.conftest import AGENTS, Stage
from tests.integration.worker.test_guarantees import encoded

#: Finds who holds a slot.
HOLDER = (ROOT / "farandole/worker/sql/slot_holder.sql").read_text(encoding="utf-8")


def metadata(stage: Stage, group: str = "echo", name: str = "jobs.heard") -> dict[int, str]:
    """What is committed beside the group's positions."""
    return {place.partition: place.metadata or "" for place in stage.log.positions(group, name)}


def spread(stage: Stage, words: list[tuple[str, str]]) -> None:
    """Put words with their plans on partition 0, each under a key of its own."""
    stage.log.write("jobs.heard", [(word.encode(), encoded(word, plan)) for word, plan in words], partition=0)


def ensure_topics(stage: Stage) -> None:
    topics.ensure(stage.settings, topics.of_agents(stage.settings, [load_agent(AGENTS / "echo.py")]))


def test_what_is_finished_behind_a_slow_event_is_seen_at_once_and_never_handled_again(stage: Stage) -> None:
    quick = [f"q{number}" for number in range(200)]
    with stage.agent(TEST_SLOW="25") as worker:
        spread(stage, [("slow", "slow"), *((word, "") for word in quick)])
        eventually(lambda: sorted(stage.said()) == sorted(quick), "everything behind the slow one is said")
        assert stage.log.committed("echo", "jobs.heard")[0] == 0, "the position stands at the slow one"
        assert metadata(stage)[0].startswith("farandole1 ")
        worker.kill()
    with stage.agent(TEST_SLOW="25") as worker:
        worker.said("offsets beyond 0 are finished")
        spread(stage, [("after", "")])
        eventually(lambda: "after" in stage.said(), "it goes on")
        assert sorted(stage.handled()) == sorted([*quick, "after", "slow", "slow"])
        worker.kill()
    with stage.agent():  # in which it takes no time
        eventually(stage.caught_up, "the slow one is through", 60)
    assert sorted(stage.said()) == sorted([*quick, "after", "slow"])


def test_metadata_of_somebody_else_is_ignored_with_a_warning(stage: Stage) -> None:
    ensure_topics(stage)
    spread(stage, [("a", ""), ("b", "")])
    place = TopicPartition(stage.log.topic("jobs.heard"), 0, 1, "kept by another tool")
    other: Consumer = Consumer({"bootstrap.servers": stage.log.brokers, "group.id": stage.log.topic("echo")})
    other.commit(offsets=[place], asynchronous=False)
    other.close()
    with stage.agent() as worker:
        worker.said("ignored the metadata of")
        spread(stage, [("c", "")])
        eventually(stage.caught_up, "it goes on from the position")
    assert stage.handled() == ["b", "c"]


def test_a_slow_handler_costs_no_membership_and_is_done_once(stage: Stage) -> None:
    """Case K11: work that is slower than the session timeout, with two workers."""
    settings: dict[str, Any] = {"FARANDOLE_SESSION_TIMEOUT_MS": "6000"}
    with stage.agent(**settings) as first, stage.agent(**settings) as second:
        second.said("assigned")  # or the rebalance that brings it in would find handlers at work
        first.said("released")
        words = [f"w{number}" for number in range(8)]
        stage.submit((word, "slow:9") for word in words)
        eventually(stage.caught_up, "all handled", 60)
    assert sorted(stage.handled()) == sorted(stage.said()) == sorted(words)


def test_workers_that_come_and_go_say_everything_once(stage: Stage) -> None:
    """Rebalances in quick turn while events flow: what is nearly done is committed, the rest is done by the next."""
    words = [f"w{number}" for number in range(600)]
    with stage.agent() as steady:
        stage.submit((word, "slow:0.05") for word in words)
        for _ in range(3):
            with stage.agent() as guest:
                assert guest.stop() == 0
        eventually(stage.caught_up, "all handled", 60)
        assert steady.process.poll() is None
    assert sorted(stage.said()) == sorted(words)


def test_a_stopped_worker_does_not_hold_its_readers_and_wakes_to_nothing(stage: Stage) -> None:
    """Case K6, with many in flight: stopped past its session, another worker does the work, then it wakes."""
    settings: dict[str, Any] = {"FARANDOLE_SESSION_TIMEOUT_MS": "6000"}
    words = [f"w{number}" for number in range(300)]
    with stage.agent(**settings) as first, stage.agent(**settings) as second:
        stage.submit((word, "slow:0.5") for word in words)
        eventually(lambda: len(stage.said()) > 20, "some said")
        first.signal(signal.SIGSTOP)
        eventually(lambda: stage.log.lag("echo", "jobs.heard") == 0, "the other does it all", 60)
        first.signal(signal.SIGCONT)
        spread(stage, [("after", "")])
        eventually(stage.caught_up, "both go on")
        assert first.process.poll() is None
        assert second.process.poll() is None
    assert sorted(stage.said()) == sorted([*words, "after"])


def test_a_worker_whose_slot_was_taken_begins_anew_under_another(stage: Stage) -> None:
    """Its session in Postgres ends while it is frozen, another worker takes its slot, then it wakes."""
    words = [f"w{number}" for number in range(40)]
    with stage.agent() as first:
        first.signal(signal.SIGSTOP)
        with postgres.connect(stage.settings) as database:
            slot = postgres.lock_number("slot", stage.settings.group("echo"), "0")
            ((pid, _),) = database.execute(
                HOLDER, (slot,)
            ).fetchall()  # of this namespace: other tests have agents, too
            database.execute("SELECT pg_terminate_backend(%s)", (pid,))
        with stage.agent() as second:
            second.said("ready agent=echo")
            first.signal(signal.SIGCONT)
            stage.submit((word, "") for word in words)
            first.said("begins anew", seconds=60)
            first.said("ready agent=echo", times=2)
            eventually(stage.caught_up, "both work", 60)
            # The second one may have to begin anew as well, where the first comes back into the group before it knows.
            assert (first.process.poll(), second.process.poll()) == (None, None)
    assert sorted(stage.said()) == sorted(words)


def test_partitions_that_the_group_has_given_to_nobody_are_shared_out_anew(stage: Stage) -> None:
    ensure_topics(stage)
    names = [stage.log.topic("jobs.heard"), stage.log.topic("echo.wake")]
    script: list[str | Path] = [
        sys.executable,
        Path(__file__).parent / "stranded.py",
        stage.log.brokers,
        stage.log.topic("echo"),
        *names,
    ]
    assert subprocess.run(script, capture_output=True, text=True, timeout=60, check=True).stdout == "stranded\n"
    words = [f"w{number}" for number in range(30)]
    with stage.agent() as first, stage.agent() as second:
        stage.submit((word, "") for word in words)
        eventually(lambda: "unheld" in first.output() + second.output(), "the partitions are missed", 60)
        eventually(stage.caught_up, "everything is handled", 60)
    assert sorted(stage.said()) == sorted(words)
