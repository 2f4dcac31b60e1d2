"""What must hold when processes die, stall, or meet an event twice: nothing lost, nothing twice, order kept by key."""

from __future__ import annotations

import signal
import uuid

import pytest
from confluent_kafka import Producer

from farandole import ids
from farandole.contracts.codec import contract
from farandole.envelope import Emitter, begin
from tests.eventually import eventually
from tests.integration.worker.conftest import Stage
from tests.integration.worker.words import Heard


def encoded(word: str, plan: str = "") -> bytes:
    made = contract(Heard, "jobs")
    return made.encode(
        begin(ids.trace_id_of_key("jobs", word), Emitter("client"), made.writer.name), Heard(word=word, plan=plan)
    )


def test_an_event_that_lies_on_the_log_twice_is_handled_once(stage: Stage) -> None:
    with stage.agent():
        stage.log.write("jobs.heard", [(b"k", encoded("twice"))] * 3, partition=0)
        eventually(stage.caught_up, "the three records handled")
        stage.log.write("jobs.heard", [(b"k", encoded("twice")), (b"k", encoded("other"))], partition=1)
        eventually(stage.caught_up, "the late duplicate handled")
    assert sorted(stage.said()) == ["other", "twice"]
    assert stage.handled() == ["twice", "other"]


def test_events_of_a_key_are_handled_in_the_order_of_the_log_and_other_keys_meanwhile(stage: Stage) -> None:
    """Ten keys on one partition; the first event of key 0 is slow."""
    pairs = [
        (f"{key}.{place}", f"slow:{1 if (key, place) == (0, 0) else 0.001}") for place in range(5) for key in range(10)
    ]
    with stage.agent():
        records = [(word.split(".")[0].encode(), encoded(word, plan)) for word, plan in pairs]
        stage.log.write("jobs.heard", records, partition=0)
        eventually(stage.caught_up, "everything handled")
    handled = stage.handled()
    for key in range(10):
        assert [word for word in handled if word.startswith(f"{key}.")] == [f"{key}.{place}" for place in range(5)]
    assert handled.index("9.4") < handled.index("0.1"), "the other keys did not wait for key 0"
    assert sorted(stage.said()) == sorted(word for word, _ in pairs)


def test_a_poison_event_is_durable_among_the_dead_before_what_follows_is_committed(stage: Stage) -> None:
    """Case K2: offset 1 fails, 2 succeeds, the worker is killed and started again."""
    with stage.agent() as worker:
        stage.log.write(
            "jobs.heard", [(b"k", encoded("a")), (b"k", encoded("b", "boom")), (b"k", encoded("c"))], partition=0
        )
        eventually(lambda: stage.log.committed("echo", "jobs.heard")[0] >= 3, "the third event committed")
        assert [record.fields["word"] for record in stage.log.read("echo.dead")] == ["b"]
        worker.kill()
    with stage.agent():
        stage.log.write("jobs.heard", [(b"k", encoded("d"))], partition=0)
        eventually(stage.caught_up, "the rest handled")
    assert sorted(stage.said()) == ["a", "c", "d"]
    assert len(stage.log.read("echo.dead")) == 1


@pytest.mark.parametrize("kind", ["echo", "echo_plain", "echo_cpu"])
def test_a_drain_gives_a_slow_handler_its_grace_then_leaves_its_offset_where_it_was(stage: Stage, kind: str) -> None:
    """Case K3: SIGTERM during a handler of 20 s with a grace of 1 s; exactly one output later."""
    with stage.agent(kind, FARANDOLE_GRACE_SECONDS="1", TEST_SLOW="20") as worker:
        stage.log.write("jobs.heard", [(b"k1", encoded("quick")), (b"k2", encoded("slow", "slow"))], partition=0)
        eventually(lambda: sorted(stage.handled()) == ["quick", "slow"], "both in hand")
        assert worker.stop() == 0
        assert "abandoned" in worker.output()
    assert stage.log.committed(kind, "jobs.heard")[0] == 1, "past the finished one, before the abandoned one"
    assert stage.said() == ["quick"]
    with stage.agent(kind) as worker:
        stage.log.write("jobs.heard", [(b"k2", encoded("after"))], partition=0)
        eventually(lambda: stage.caught_up(kind), "both handled")
        assert worker.stop() == 0
    assert sorted(stage.said()) == ["after", "quick", "slow"]


def test_a_second_signal_leaves_at_once_and_the_work_is_done_by_the_next(stage: Stage) -> None:
    with stage.agent(TEST_SLOW="20") as worker:
        stage.log.write("jobs.heard", [(b"k", encoded("slow", "slow"))], partition=0)
        eventually(stage.handled, "the event in hand")
        worker.signal(signal.SIGINT)
        worker.said("draining")
        worker.signal(signal.SIGINT)
        assert worker.process.wait(15) == 130, "it leaves before the handler is through"
    with stage.agent():
        eventually(lambda: stage.said() == ["slow"], "said by the next worker")


def test_killed_workers_lose_nothing_and_say_nothing_twice(stage: Stage) -> None:
    words = [f"w{number}" for number in range(400)]
    with stage.agent(FARANDOLE_BATCH="20") as first:
        stage.submit((word, "slow:0.02") for word in words)
        eventually(lambda: len(stage.said()) > 40, "some said")
        first.kill()
    for share in (120, 240):
        with stage.agent(FARANDOLE_BATCH="20") as next_one:
            eventually(lambda share=share: len(stage.said()) > share, f"more than {share} said")  # type: ignore[misc]
            next_one.kill()
    with stage.agent():
        eventually(stage.caught_up, "everything handled")
        assert sorted(stage.said()) == sorted(words)


def test_a_worker_whose_transaction_is_fenced_tries_again_and_says_each_word_once(stage: Stage) -> None:
    """Case K1: the transaction of a batch from two partitions aborts; then one more record comes to each."""
    with stage.agent() as worker:
        stage.log.write("jobs.heard", [(b"k1", encoded("zero"))], partition=0)
        eventually(stage.caught_up, "the first word handled")
        usurper = Producer({"bootstrap.servers": stage.log.brokers, "transactional.id": stage.log.topic("echo.0")})
        usurper.init_transactions(10)
        for partition in (0, 1):
            stage.log.write(
                "jobs.heard",
                [(b"k", encoded(f"first{partition}")), (b"k", encoded(f"boom{partition}", "boom"))],
                partition=partition,
            )
        eventually(lambda: len(stage.said()) == 3, "said in spite of the fence")
        for partition in (0, 1):
            stage.log.write("jobs.heard", [(b"k", encoded(f"second{partition}"))], partition=partition)
        eventually(stage.caught_up, "the rest handled")
        assert "commit_failed" in worker.output()
    assert sorted(stage.said()) == ["first0", "first1", "second0", "second1", "zero"]
    assert sorted(record.fields["word"] for record in stage.log.read("echo.dead")) == ["boom0", "boom1"]


def test_a_stopped_worker_that_wakes_after_losing_its_partitions_commits_nothing(stage: Stage) -> None:
    """Case K6: SIGSTOP before the commit, another finishes the partition, SIGCONT."""
    with stage.agent(FARANDOLE_SESSION_TIMEOUT_MS="6000") as sleeper:
        stage.log.write("jobs.heard", [(b"k", encoded("once", "slow:1.5"))], partition=0)
        eventually(stage.handled, "the event in hand")
        sleeper.signal(signal.SIGSTOP)
        with stage.agent(FARANDOLE_SESSION_TIMEOUT_MS="6000"):
            eventually(lambda: stage.said() == ["once"], "said by the other worker", 60)
            sleeper.signal(signal.SIGCONT)
            sleeper.said("lost", seconds=60)
            stage.log.write("jobs.heard", [(f"k{n}".encode(), encoded(f"w{n}")) for n in range(20)])
            eventually(stage.caught_up, "the rest handled", 60)
    assert sorted(stage.said()) == sorted(["once", *(f"w{n}" for n in range(20))])
    assert stage.handled().count("once") == 2, "both handled it, one output was committed"


def test_lag_is_zero_although_a_transaction_marker_is_the_last_thing_on_the_log(stage: Stage) -> None:
    """Case K7."""
    with stage.agent():
        producer = Producer({"bootstrap.servers": stage.log.brokers, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce(stage.log.topic("jobs.heard"), key=b"k", value=encoded("marked"), partition=0)
        producer.commit_transaction(10)
        eventually(lambda: stage.said() == ["marked"], "the event handled")
        eventually(lambda: stage.log.lag("echo", "jobs.heard") == 0, "the marker passed")


def test_two_workers_share_the_partitions_and_one_takes_over_when_the_other_is_killed(stage: Stage) -> None:
    with (
        stage.agent(FARANDOLE_SESSION_TIMEOUT_MS="6000") as one,
        stage.agent(FARANDOLE_SESSION_TIMEOUT_MS="6000") as two,
    ):
        two.said("assigned")
        one.said("released")
        stage.submit((f"a{n}", "") for n in range(40))
        eventually(stage.caught_up, "the first half handled")
        one.kill()
        stage.submit((f"b{n}", "") for n in range(40))
        eventually(stage.caught_up, "the second half handled by one alone")
        assert "slot=1" in two.output()
    assert sorted(stage.said()) == sorted([f"a{n}" for n in range(40)] + [f"b{n}" for n in range(40)])
