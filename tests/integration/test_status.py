"""`farandole status` shows how agents and the projector stand, as they are, and what it could not learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from farandole import kafka, lag, topics
from farandole.cli import app
from farandole.errors import ExitCode
from farandole.settings import Settings
from farandole.testing.flow import environment
from tests.eventually import eventually
from tests.integration.standing_shop import AGENTS, Shop
from tests.unit.projects import project

EVIL = "bad\x1b[31m\u202ething\x00"


@pytest.fixture
def shop(tmp_path: Path, farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Shop:
    settings = farandole_settings.model_copy(update={"flow": "orders"})
    for variable, value in environment(settings).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    return Shop(settings, tmp_path)


def status(*arguments: str, code: int = 0) -> str:
    ended = CliRunner().invoke(app, ["status", *arguments])
    assert ended.exit_code == code, ended.output
    return ended.stdout


def standing(*arguments: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(status("--json", *arguments, code=code))
    return found


def agent(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in found["agents"] if one["agent"] == name)


def test_lag_is_counted_from_the_committed_offset_and_the_oldest_record_gives_its_age(shop: Shop) -> None:
    # Given five records in each of two partitions, of which one group has committed some, and a wake
    for partition in (0, 1):
        shop.log.write("orders.placed", [(None, b"x")] * 5, partition=partition)
    shop.log.write("price.wake", [(None, b"x")], partition=0)
    shop.commit("price", "orders.placed", 0, 4)
    shop.commit("price", "orders.placed", 1, 5)

    # Then it lags by the one that is left; the group that was never there by all it would read
    found = standing()
    price, bill = agent(found, "price"), agent(found, "bill")
    assert price["lag"]["behind"] == [{"topic": "orders.placed", "partition": 0, "records": 1}]
    assert price["lag"]["records"] == 1 and 0 <= price["lag"]["seconds"] < 300
    assert price["wake_lag"]["records"] == 1
    assert (bill["lag"]["records"], bill["lag"]["seconds"]) == (0, None)
    assert (found["exit_code"], found["still"]) == (0, [])

    # And looking has moved nobody's position
    assert shop.log.committed("price", "orders.placed")[0] == 4


def test_large_batches_in_many_partitions_all_tell_their_age(shop: Shop) -> None:
    for partition in range(6):
        shop.log.write("orders.placed", [(None, bytes(300_000))] * 3, partition=partition)
    found = standing()
    assert agent(found, "price")["lag"]["records"] == 18
    assert (agent(found, "price")["lag"]["seconds"] is not None, found["notes"]) == (True, [])


def test_what_its_producer_has_not_committed_is_no_lag_nor_are_the_ends_of_transactions(shop: Shop) -> None:
    writer = kafka.producer(shop.settings, transactional_id=f"{shop.settings.namespace}.test")
    writer.init_transactions(10)
    shop.log.write("orders.placed", [(None, b"x")], partition=1)
    for partition in (0, 1):
        writer.begin_transaction()
        writer.produce(shop.settings.topic("orders.placed"), b"x", partition=partition)
        writer.flush(10)
        if partition == 0:
            writer.abort_transaction(10)
    found = agent(standing(), "price")["lag"]
    assert found["behind"] == [{"topic": "orders.placed", "partition": 1, "records": 1}]
    writer.commit_transaction(10)
    eventually(
        lambda: agent(standing(), "price")["lag"]["records"] == 3, "two records, and the mark of a commit behind them"
    )


def test_waits_are_counted_by_kind_with_what_is_due(shop: Shop) -> None:
    shop.run(
        'INSERT INTO wait (agent, event_id, run, seq, kind, trace_id, due, topic, partition, "offset", timestamp_ms, value,'
        " headers, attempts, error, woken_at) SELECT 'price', gen_random_uuid(), 0, 1, kind, gen_random_uuid(),"
        " now() + given.due, 't', 0, 0, 0, '', '[]', 1, '', now() + woken"
        " FROM (VALUES ('retry', interval '1 hour', NULL::interval), ('retry', '-1 minute', NULL), ('retry', '-1 hour', '0'),"
        " ('behind', NULL, NULL)) AS given (kind, due, woken)"
    )
    behind, retry = agent(standing(), "price")["waits"]
    assert (behind["kind"], behind["count"], behind["next_due"], behind["overdue"]) == ("behind", 1, None, 0)
    assert (retry["kind"], retry["count"], retry["woken"], retry["overdue"]) == ("retry", 2, 1, 1)
    assert "price: waits (retry): 2, next in 0 ms, 1 overdue, 1 woken" in status()


def test_dead_letters_are_open_until_they_are_answered(shop: Shop) -> None:
    ids = [f"00000000-0000-8000-8000-00000000000{number}" for number in range(6)]
    for number, cause in enumerate(("rejected", "rejected", "attempts", "attempts")):
        shop.event("JobDeadLettered", ids[number], {"agent": "price", "cause": cause}, "blocked")
    shop.event("JobRedriven", ids[4], {"agent": "price", "dead_event_id": ids[0]})
    shop.event("JobDiscarded", ids[5], {"agent": "price", "dead_event_id": ids[2]}, "failed")
    assert agent(standing(), "price")["dead_letters"] == {"open": 2, "by_cause": {"attempts": 1, "rejected": 1}}
    assert "price: dead letters that are open: attempts 1, rejected 1" in status()


def test_workers_that_live_are_added_up_and_those_that_do_not_are_named(shop: Shop) -> None:
    error = {"last_error": EVIL.replace("\x00", ""), "last_error_at": "2026-01-02T03:04:05+00:00"}
    rates = {"handled": 10.5, "emitted": 3.0, "dead_lettered": 0.5}
    shop.worker("price", 0, 1, in_flight=3, queued=2, uncommitted=1, paused=1, rates=rates, **error)
    shop.worker("price", 1, 2, in_flight=4, rates=rates)
    shop.worker("price", 2, 7200, in_flight=100, rates=rates)
    found = agent(standing(), "price")
    assert {name: found[name] for name in ("in_flight", "queued", "uncommitted", "paused")} == {
        "in_flight": 7, "queued": 2, "uncommitted": 1, "paused": 1,
    }  # fmt: skip
    assert found["rates"] == {"handled": 21.0, "emitted": 6.0, "dead_lettered": 1.0}
    assert [(one["slot"], one["state"], one["alive"]) for one in found["workers"]] == [
        (0, "running", True), (1, "running", True), (2, "gone", False),
    ]  # fmt: skip
    assert found["last_error"]["at"] == "2026-01-02T03:04:05+00:00"
    shown = status()
    assert "price: slot 2 gone, last heard of 2 h 00 m ago (pid 7 on here)" in shown
    assert "\x1b" not in shown and "\u202e" not in shown and "bad\\x1b[31m\\u202ething" in shown


def test_a_brake_or_an_outage_stands_still_and_says_why(shop: Shop) -> None:
    shop.worker("price", 0, 1, state="braked", reason="50 dead letters in a row")
    shop.worker("bill", 0, 1, state="waiting", reason="the broker is away")
    found = standing(code=ExitCode.STANDS_STILL)
    assert found["still"] == [
        "bill: slot 0 waiting: the broker is away",
        "price: slot 0 braked: 50 dead letters in a row",
    ]
    assert "stands still: price: slot 0 braked: 50 dead letters in a row" in status(code=ExitCode.STANDS_STILL)


def test_a_worker_that_stopped_by_itself_matters_as_long_as_no_other_one_lives(shop: Shop) -> None:
    shop.worker("price", 0, 1, state="stopped", reason="an outage has lasted 300 s")
    assert standing(code=ExitCode.STANDS_STILL)["still"] == ["price: slot 0 stopped: an outage has lasted 300 s"]
    shop.worker("price", 1, 1)
    assert standing()["still"] == []


def test_the_projector_is_shown_with_what_waits_for_a_person(shop: Shop) -> None:
    shop.log.write("orders.placed", [(None, b"x")] * 3, partition=0)
    shop.run("INSERT INTO projector_offset (topic, partition, next_offset) VALUES ('orders.placed', 0, 1)")
    found = standing()["projector"]
    assert (found["lag"]["records"], found["parked"], found["gaps"], found["suspended"]) == (2, 0, [], {})
    shop.run("UPDATE projector_offset SET gap = 'offset 1 is out of range'")
    shop.run("INSERT INTO projection (name, hash, error) VALUES ('totals', 'x', 'division by zero')")
    found = standing(code=ExitCode.STANDS_STILL)
    assert found["still"] == [
        "projector: gap: orders.placed [0]: offset 1 is out of range",
        "projector: projection totals is suspended: division by zero",
    ]


def test_a_group_that_the_project_does_not_declare_is_shown(shop: Shop) -> None:
    stray = topics.Wanted("stray.dead", 1)
    topics.ensure(shop.settings, [stray, topics.Wanted("never.dead", 1)])
    shop.log.write("orders.placed", [(None, b"x")] * 3, partition=2)
    shop.commit("stray", "orders.placed", 2, 1)
    found = standing()
    assert [(one["agent"], one["declared"]) for one in found["agents"]] == [
        ("bill", True), ("price", True), ("stray", False),
    ]  # fmt: skip
    assert (agent(found, "stray")["topic"], agent(found, "stray")["lag"]["records"]) == ("orders.placed", 2)
    assert "stray (not in the project)" in status()


def test_one_agent_is_looked_at_closely_and_one_that_is_not_there_is_no_agent(shop: Shop) -> None:
    shop.worker("price", 3, 1, held=6)
    shop.log.write("orders.placed", [(None, b"x")] * 2, partition=4)
    assert [one["agent"] for one in standing("--agent", "price")["agents"]] == ["price"]
    shown = status("--agent", "price")
    assert "behind on orders.placed: [4] 2" in shown and "uncommitted" in shown
    status("--agent", "nobody", code=ExitCode.NOT_FOUND)


def test_an_offset_outside_of_the_log_is_a_gap(shop: Shop) -> None:
    shop.log.write("orders.placed", [(None, b"x")] * 3, partition=0)
    shop.commit("price", "orders.placed", 0, 1)
    place = TopicPartition(shop.settings.topic("orders.placed"), 0, 2)
    next(iter(shop.log.admin.delete_records([place]).values())).result(10)
    found = standing(code=ExitCode.STANDS_STILL)
    assert found["still"] == ["price: gap: orders.placed [0]: it stands at offset 1, the log has 2 to 3"]


def test_without_the_broker_the_database_tells_its_part(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.worker("price", 0, 1, in_flight=3)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr(lag, "PATIENCE", 0.5)
    found = standing(code=ExitCode.UNREACHABLE)
    assert (agent(found, "price")["in_flight"], agent(found, "price")["lag"]) == (3, None)
    assert found["broker"]["answers"] is False and "127.0.0.1:1" in found["broker"]["error"]
    assert found["database"]["answers"] is True
    assert "without the broker: no Kafka broker answers" in status(code=ExitCode.UNREACHABLE)


def test_without_the_database_the_broker_tells_its_part(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.log.write("orders.placed", [(None, b"x")] * 3, partition=0)
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:secret@127.0.0.1:1/d")
    found = standing(code=ExitCode.UNREACHABLE)
    assert agent(found, "price")["lag"]["records"] == 3
    assert found["database"]["answers"] is False and "secret" not in str(found)


def test_before_anything_was_started_there_is_nothing_to_tell(
    tmp_path: Path, farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in environment(farandole_settings.model_copy(update={"flow": "orders"})).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    project(tmp_path, agents=AGENTS)
    found = standing()
    assert [(one["agent"], one["lag"]["records"], one["workers"]) for one in found["agents"]] == [
        ("bill", 0, []), ("price", 0, []),
    ]  # fmt: skip
    assert found["projector"]["lag"] is None


def test_agents_that_do_not_load_are_said_and_the_rest_is_shown(shop: Shop, tmp_path: Path) -> None:
    shop.worker("price", 0, 1, in_flight=3)
    (tmp_path / "agents" / "wrong.py").write_text("this is no Python")
    found = standing(code=ExitCode.CONFIGURATION)
    assert "wrong.py:1" in found["problem"] and agent(found, "price")["in_flight"] == 3
