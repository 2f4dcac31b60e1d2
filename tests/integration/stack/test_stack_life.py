"""A stack's life: up, again, down, beside another, after a crash."""

from __future__ import annotations

import json
import subprocess
import sys

import psycopg
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from farandole.project import find_project
from farandole.settings import load_settings
from farandole.stack import ports, process
from farandole.stack.state import ServiceState
from farandole.stack.status import Condition, Endpoints
from tests.integration.stack.checkouts import Checkout, kill


def topics(endpoints: Endpoints) -> set[str]:
    """The topics of a broker that are not Kafka's own."""
    found = AdminClient({"bootstrap.servers": endpoints.kafka_bootstrap_servers}).list_topics(timeout=10).topics
    return {name for name in found if not name.startswith("__")}


def create_topic(endpoints: Endpoints, name: str) -> None:
    """Make a topic with one partition."""
    admin = AdminClient({"bootstrap.servers": endpoints.kafka_bootstrap_servers})
    for made in admin.create_topics([NewTopic(name, 1, 1)]).values():
        made.result(timeout=10)


def test_two_commands_at_once_and_a_third_later_give_one_stack(checkout: Checkout) -> None:
    # Given two `up` that run at the same time, and one after them
    first, second = checkout.start("up"), checkout.start("up")
    answers = [command.communicate(timeout=60) for command in (first, second)]
    third = checkout.run("up")

    # Then all succeed with the same addresses, and one Kafka and one Postgres run
    assert (first.returncode, second.returncode, third.returncode) == (0, 0, 0), answers
    assert answers[0][0] == answers[1][0] == third.stdout
    assert len(checkout.daemons()) == 2

    # And `status --json` tells of each service what a program may want to know
    shown = json.loads(checkout.run("status", "--json").stdout)
    kafka, postgres = shown["services"]["kafka"], shown["services"]["postgres"]
    assert (kafka["state"], kafka["version"]) == ("running", "4.2.2")
    assert (postgres["state"], postgres["version"].split(".")[0]) == ("running", "18")
    assert {kafka["pid"], postgres["pid"]} == set(checkout.daemons())
    assert kafka["data_bytes"] > 0 and postgres["data_bytes"] > 30 * 2**20
    assert shown["kafka_bootstrap_servers"] == f"127.0.0.1:{kafka['port']}"
    assert f"@127.0.0.1:{postgres['port']}/farandole" in shown["database_url"]

    # And settings find the stack by themselves
    settings = load_settings(find_project(checkout.root))
    assert (settings.brokers, settings.database) == (shown["kafka_bootstrap_servers"], shown["database_url"])


def test_data_and_ports_survive_down_and_up_until_they_are_wiped(checkout: Checkout) -> None:
    # Given a stack with a topic and a table
    stack = checkout.stack
    before = stack.up()
    create_topic(before, "kept")
    with psycopg.connect(before.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")

    # When it goes down and up again
    stack.down()
    assert not (stack.data / "endpoints.json").exists()
    assert [service.state for service in stack.status().services] == [Condition.STOPPED, Condition.STOPPED]
    after = stack.up()

    # Then addresses, topic and table are as they were
    assert after == before
    assert topics(after) == {"kept"}
    with psycopg.connect(after.database_url) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)

    # And wiping leaves nothing but the lock
    stack.down(wipe=True)
    assert [entry.name for entry in stack.data.iterdir()] == ["stack.lock"]


def test_two_checkouts_run_side_by_side(checkout: Checkout, second_checkout: Checkout) -> None:
    # Given two checkouts whose stacks are up
    one, other = checkout.stack.up(), second_checkout.stack.up()

    # When a topic is made in one of them
    create_topic(one, "mine")

    # Then the other has none, and outlives the first
    assert topics(other) == set()
    checkout.stack.down()
    assert checkout.processes() == []
    assert second_checkout.stack.status().running


def test_a_crashed_service_is_seen_and_started_again(checkout: Checkout) -> None:
    # Given a stack with a topic, whose broker and database were killed
    before = checkout.stack.up()
    create_topic(before, "kept")
    for service in checkout.stack.status().services:
        assert service.pid
        kill(service.pid)

    # Then status says so, with exit code 1, and the addresses are withdrawn
    shown = checkout.run("status")
    assert shown.returncode == 1 and shown.stdout.count("crashed") == 2
    assert not (checkout.stack.data / "endpoints.json").exists()

    # And `up` brings both back with their data
    assert checkout.stack.up() == before
    assert topics(before) == {"kept"}
    with psycopg.connect(before.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_running_service_moves_to_the_port_that_is_asked_for(checkout: Checkout) -> None:
    # Given a stack with a topic
    before = checkout.stack.up()
    create_topic(before, "kept")
    postgres = checkout.stack.status().services[1].pid

    # When Kafka is asked for on another port
    port = ports.choose(set())
    answer = checkout.run("up", "--kafka-port", str(port))

    # Then it says so and moves there with its data; Postgres stays as it is
    assert answer.returncode == 0, answer.stderr
    assert f"it is restarted on port {port}" in answer.stderr
    after = checkout.stack.status()
    assert after.endpoints and after.endpoints.kafka_bootstrap_servers == f"127.0.0.1:{port}"
    assert topics(after.endpoints) == {"kept"}
    assert after.services[1].pid == postgres


def test_a_pid_that_another_process_uses_now_is_not_taken_for_the_broker(checkout: Checkout) -> None:
    # Given a stack.json from before a reboot, whose pids name a process of somebody else
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        with checkout.stack.book.edit() as found:
            started = process.start_time(stranger.pid)
            found.kafka = ServiceState(20_001, "4.2.2", stranger.pid, started)
            found.postgres = ServiceState(20_002, "18.6", stranger.pid, started)

        # Then both count as crashed, and stopping them stops nobody
        conditions = [service.state for service in checkout.stack.status().services]
        assert conditions == [Condition.CRASHED, Condition.CRASHED]
        checkout.stack.down()
        assert stranger.poll() is None
        stranger.communicate(b"\n")


def test_one_service_stops_and_starts_while_the_other_serves(checkout: Checkout) -> None:
    # Given a stack that is up
    stack = checkout.stack
    endpoints = stack.up()

    # When Postgres stops, then Kafka still serves
    stack.postgres.stop()
    assert topics(endpoints) == set()
    stack.postgres.start()

    # When Kafka stops, then Postgres still serves
    stack.kafka.stop()
    with psycopg.connect(endpoints.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)

    # And afterwards both are where they were
    stack.kafka.start()
    assert stack.status().endpoints == endpoints
