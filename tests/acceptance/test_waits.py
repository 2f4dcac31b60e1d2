"""Delayed retries through running workers: due once, blocking nothing, in order where that is asked; crashes included."""

from __future__ import annotations

import itertools
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from farandole import ids, postgres
from farandole.contracts.codec import contract
from farandole.envelope import Emitter, begin
from farandole.settings import Settings
from tests.commands import running, typed
from tests.eventually import eventually
from tests.integration.worker.conftest import Stage
from tests.integration.worker.words import Heard


@pytest.fixture
def stage(farandole_settings: Settings, tmp_path: Path) -> Stage:
    return Stage(farandole_settings, tmp_path)


def encoded(word: str, plan: str = "") -> bytes:
    made = contract(Heard, "jobs")
    raw = begin(ids.trace_id_of_key("jobs", word), Emitter("client"), made.writer.name)
    return made.encode(raw, Heard(word=word, plan=plan))


def write(stage: Stage, *events: tuple[str, str, str], partition: int = 0) -> None:
    """Events as (key, word, plan), in one partition."""
    stage.log.write(
        "jobs.heard", [(key.encode(), encoded(word, plan)) for key, word, plan in events], partition=partition
    )


def rows(stage: Stage, sql: str) -> list[tuple[Any, ...]]:
    with postgres.connect(stage.settings) as connection:
        return connection.execute(sql).fetchall()


def waiting(stage: Stage) -> list[tuple[Any, ...]]:
    return rows(stage, 'SELECT kind, "offset" FROM wait WHERE woken_at IS NULL ORDER BY "offset"')


def rewind(stage: Stage, agent: str, offset: int, partition: int = 0) -> None:
    """As if the worker had been killed before the commit of this offset: its group must be empty."""
    place = TopicPartition(stage.log.topic("jobs.heard"), partition, offset)
    asked = [ConsumerGroupTopicPartitions(stage.log.topic(agent), [place])]
    for future in stage.log.admin.alter_consumer_group_offsets(asked).values():
        future.result(20)


def settled(stage: Stage, agent: str) -> bool:
    done = stage.log.lag(agent, "jobs.heard") == 0 and stage.log.lag(agent, f"{agent}.wake") == 0
    return done and rows(stage, "SELECT count(*) FROM wait") == [(0,)]


def test_a_delayed_retry_is_handled_once_when_it_is_due_and_blocks_nothing(stage: Stage) -> None:
    with stage.agent("patient") as worker:
        write(stage, ("k", "later", "later:2:2"), ("k", "next", ""), ("x", "other", ""))
        eventually(lambda: len(stage.said()) == 2, "the others are said")
        assert sorted(stage.said()) == ["next", "other"], "those behind it have overtaken it"
        assert stage.log.committed("patient", "jobs.heard")[0] >= 3, "no offset waits for it"
        assert waiting(stage) == [("retry", 0)]
        eventually(lambda: settled(stage, "patient"), "it is through")
        assert worker.stop() == 0
    said = {fields["word"]: fields for fields in stage.log.fields("jobs.said")}
    assert sorted(stage.said()) == ["later", "next", "other"]
    assert said["later"]["attempt"] == 3
    heard = {fields["word"]: fields for fields in stage.log.fields("jobs.heard")}
    assert (said["later"]["causation_id"], said["later"]["run"]) == (heard["later"]["event_id"], 0)


def test_attempts_that_are_used_up_across_waits_end_in_a_dead_letter_with_the_first_error(stage: Stage) -> None:
    with stage.agent("patient"):
        write(stage, ("k", "never", "boom"))
        eventually(lambda: len(stage.log.read("patient.dead")) == 1, "dead-lettered", 60)
        eventually(lambda: settled(stage, "patient"), "and over")
    [dead], [heard] = stage.log.read("patient.dead"), stage.log.read("jobs.heard")
    assert dead.header("farandole.dead.attempts") == "9"
    assert dead.header("farandole.dead.error").startswith("ValueError: attempt 1 cannot say")
    assert (dead.header("farandole.dead.topic"), dead.header("farandole.dead.offset")) == ("jobs.heard", "0")
    assert (dead.key, dead.value) == (heard.key, heard.value)
    assert [name for name, _ in dead.headers if name.startswith("farandole.wake.")] == []


def test_with_hold_the_events_of_a_key_keep_their_order_and_other_keys_go_on(stage: Stage) -> None:
    with stage.agent("orderly") as worker:
        write(stage, ("k", "a", "later:1.5:2"), ("k", "b", ""), ("x", "y", ""), ("k", "c", "later:0.3:1"))
        eventually(lambda: stage.said() == ["y"], "the other key goes on")
        eventually(lambda: ("behind", 1) in waiting(stage), "b stands behind a")
        write(stage, ("k", "d", ""), ("k", "e", ""))
        eventually(lambda: settled(stage, "orderly"), "all through", 60)
        write(stage, ("k", "f", ""))
        eventually(lambda: settled(stage, "orderly"), "and the next is not held")
        assert worker.stop() == 0
    handled = [word for word in stage.handled() if word != "y"]
    assert handled == ["a", "a", "a", "b", "c", "c", "d", "e", "f"]
    assert sorted(stage.said()) == ["a", "b", "c", "d", "e", "f", "y"]


def test_with_hold_many_keys_keep_their_order_while_workers_are_killed(stage: Stage) -> None:
    """Ten keys, some of whose events are put off once or twice; a seed chooses which, and when a worker is killed."""
    seed = int(os.environ.get("TEST_SEED") or time.time())
    print(f"TEST_SEED={seed} repeats the choices of this run")
    chance = random.Random(seed)
    plans = ("", "", "", "later:0.2:1", "later:0.5:2")
    events = [(f"k{key}", f"k{key}.{place}", chance.choice(plans)) for place in range(12) for key in range(10)]
    with stage.agent("orderly", FARANDOLE_SESSION_TIMEOUT_MS="6000") as first:
        write(stage, *events[:60])
        eventually(lambda: len(stage.said()) > 10, "some are said")
        first.kill()
    with (
        stage.agent("orderly", FARANDOLE_SESSION_TIMEOUT_MS="6000") as second,
        stage.agent("orderly", FARANDOLE_SESSION_TIMEOUT_MS="6000"),
    ):
        write(stage, *events[60:])
        eventually(lambda: len(stage.said()) > chance.randint(30, 80), "more are said", 60)
        second.kill()
        eventually(lambda: settled(stage, "orderly"), "all through", 90)
    assert sorted(stage.said()) == sorted(word for _, word, _ in events), "each once"
    in_order = [record.fields["word"] for record in sorted(stage.log.read("jobs.said"), key=_when)]
    for key in range(10):
        assert [word for word in in_order if word.startswith(f"k{key}.")] == [f"k{key}.{place}" for place in range(12)]


def test_with_hold_events_that_arrive_while_one_is_being_put_off_do_not_overtake_it(stage: Stage) -> None:
    """A trickle of events of a few keys: some are claimed before the row of the one before them is committed."""
    chance = random.Random(7)
    plans = ("", "", "", "", "later:0.02:1", "later:0.05:2")
    events = [(f"k{key}", f"k{key}.{place}", chance.choice(plans)) for place in range(120) for key in range(4)]
    with stage.agent("orderly"):
        for event in events:
            write(stage, event)
        eventually(lambda: settled(stage, "orderly"), "all through", 90)
    handled = [word for word, _ in itertools.groupby(sorted(stage.handled(), key=lambda word: word.split(".")[0]))]
    assert handled == sorted((word for _, word, _ in events), key=lambda word: word.split(".")[0])
    assert sorted(stage.said()) == sorted(word for _, word, _ in events)


def test_an_event_that_was_put_off_but_not_committed_is_not_handled_beside_its_wait(stage: Stage) -> None:
    """Killed between the row and the commit of the offset: what that leaves is made by setting the offset back."""
    with stage.agent("patient", FARANDOLE_SESSION_TIMEOUT_MS="6000") as worker:
        write(stage, ("k", "a", "later:3600:1"))
        eventually(lambda: stage.caught_up("patient") and waiting(stage) == [("retry", 0)], "put off")
        worker.kill()
    eventually(lambda: _empty(stage, "patient"), "the group is empty", 60)
    rewind(stage, "patient", 0)
    with stage.agent("patient"):
        write(stage, ("k", "b", ""))
        eventually(lambda: stage.caught_up("patient"), "read again")
        assert stage.handled() == ["a", "b"], "not again: it waits"
        rows(stage, "UPDATE wait SET due = now() RETURNING 1")
        eventually(lambda: settled(stage, "patient"), "through")
    assert sorted(stage.said()) == ["a", "b"]


def _empty(stage: Stage, agent: str) -> bool:
    found = stage.log.admin.describe_consumer_groups([stage.log.topic(agent)])[stage.log.topic(agent)].result(20)
    return not found.members


def test_what_fails_is_durable_in_its_row_before_what_follows_is_committed(stage: Stage) -> None:
    """Case K2: offset 1 fails, 2 succeeds, the worker is killed and started again."""
    with stage.agent("patient") as worker:
        write(stage, ("k", "a", ""), ("k", "b", "later:3600:1"), ("k", "c", ""))
        eventually(lambda: stage.log.committed("patient", "jobs.heard")[0] >= 3, "the third event committed")
        assert waiting(stage) == [("retry", 1)]
        worker.kill()
    with stage.agent("patient"):
        write(stage, ("k", "d", ""))
        eventually(lambda: stage.caught_up("patient"), "the rest handled")
        rows(stage, "UPDATE wait SET due = now() RETURNING 1")
        eventually(lambda: settled(stage, "patient"), "the wait is over")
    assert sorted(stage.said()) == ["a", "b", "c", "d"]


def test_each_wait_has_its_own_time_while_workers_come_and_go(stage: Stage) -> None:
    """Case K8: waits of several lengths at once, the longest first; a peer joins and leaves meanwhile."""
    with stage.agent("patient") as worker:
        write(stage, ("a", "long", "later:9:1"), ("b", "middle", "later:5:1"), ("c", "short", "later:1:1"))
        eventually(lambda: len(waiting(stage)) == 3, "all three wait")
        with stage.agent("patient") as peer:
            eventually(lambda: "short" in stage.said(), "the shortest is due")
            assert peer.stop() == 0
        eventually(lambda: settled(stage, "patient"), "all through", 60)
        assert worker.stop() == 0
    said = [record.fields["word"] for record in sorted(stage.log.read("jobs.said"), key=_when)]
    assert said == ["short", "middle", "long"]
    eventually(lambda: stage.caught_up("patient"), "it has read everything")


def _when(record: Any) -> Any:
    return record.fields["occurred_at"]


def test_killed_workers_lose_no_wait_and_say_nothing_twice(stage: Stage) -> None:
    seed = int(os.environ.get("TEST_SEED") or time.time())
    print(f"TEST_SEED={seed} repeats the choices of this run")
    chance = random.Random(seed)
    words = [(f"w{number}", f"w{number}", chance.choice(["later:0.3:1", "later:0.1:3", ""])) for number in range(300)]
    for share in range(5):
        with stage.agent("patient", FARANDOLE_BATCH="20") as worker:
            write(stage, *words[share * 60 : share * 60 + 60], partition=share % 4)
            goal = len(stage.said()) + chance.randint(1, 50)
            eventually(lambda goal=goal: len(stage.said()) >= goal, f"{goal} said", 120)  # type: ignore[misc]
            worker.kill()
    with stage.agent("patient"):
        eventually(lambda: settled(stage, "patient"), "all through", 120)
    assert sorted(stage.said()) == sorted(word for _, word, _ in words)


def test_a_job_shows_that_it_waits_and_until_when(stage: Stage, tmp_path: Path) -> None:
    with running(stage.settings, tmp_path / "projector.log", "projector") as projector, stage.agent("patient"):
        projector.said("projector topics=")
        [trace_id] = stage.submit([("slowly", "later:3600:1")])
        status = f"SELECT status FROM job_state WHERE trace_id = '{trace_id}'"
        eventually(lambda: rows(stage, status) == [("waiting",)], "it waits")
        shown = _command(stage, "job", trace_id)
        assert "waiting" in shown
        assert "patient" in shown
        assert "Retry: not yet" in shown
        [wait] = json.loads(_command(stage, "job", trace_id, "--json"))["waits"]
        assert (wait["agent"], wait["kind"], wait["attempts"]) == ("patient", "retry", 1)
        assert [job["trace_id"] for job in json.loads(_command(stage, "jobs", "--status", "waiting", "--json"))] == [
            trace_id
        ]
        rows(stage, "UPDATE wait SET due = now() RETURNING 1")
        eventually(lambda: rows(stage, status) == [("running",)] and stage.said() == ["slowly"], "it goes on")
        assert json.loads(_command(stage, "jobs", "--status", "waiting", "--json")) == []


def _command(stage: Stage, *arguments: str) -> str:
    done = typed(stage.settings, *arguments)
    done.check_returncode()
    return done.stdout
