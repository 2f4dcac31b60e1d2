"""The Schema Registry of a stack: part of it from the `up` that asks for it on, with schemas that survive what it does."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from farandole.checks.registry import look_at
from farandole.errors import ExitCode, FarandoleError
from farandole.project import find_project
from farandole.settings import load_settings
from farandole.stack import ports, process
from farandole.stack.stack import Stack
from farandole.stack.status import Condition, Endpoints
from tests.eventually import eventually
from tests.integration.stack.checkouts import Checkout, kill, kill_group

SERVICES = ("KAFKA_BOOTSTRAP_SERVERS", "DATABASE_URL", "SCHEMA_REGISTRY_URL")


@pytest.fixture(scope="module")
def plain() -> Iterator[Checkout]:
    """A checkout whose Kafka and Postgres run, in a folder with a name of more than plain letters."""
    root = Path(tempfile.mkdtemp(prefix="farandole-prüfung 1 "))
    root.chmod(0o755)
    (root / "pyproject.toml").write_text("[tool.farandole]\n")
    checkout = Checkout(root)
    with pytest.MonkeyPatch.context() as patched:
        for variable in SERVICES:
            patched.delenv(variable, raising=False)
        checkout.stack.up()
        yield checkout
    checkout.stack.down(wipe=True)
    shutil.rmtree(root)


def test_a_registry_that_cannot_be_had_leaves_the_others_as_they_are(plain: Checkout, tmp_path: Path) -> None:
    # Given a stack that is up, an empty cache, and a repository whose port nobody listens on
    before, running = plain.stack.status().endpoints, plain.daemons()
    port = ports.choose(set())
    stack = Stack(plain.stack.data, cache=tmp_path, repository=f"http://127.0.0.1:{port}/maven2")

    # When a registry is asked for, then the sentence names the file, the address and the ways out
    with pytest.raises(FarandoleError) as caught:
        stack.up(registry=True)
    assert caught.value.exit_code is ExitCode.NO_NETWORK
    assert "apicurio-registry-app-3.3.3-all.tar.gz" in str(caught.value) and "HTTPS_PROXY" in str(caught.value)
    assert f"127.0.0.1:{port}" in str(caught.value) and "\n" not in str(caught.value)

    # And what ran serves on, and is still found
    assert before and before == plain.stack.status().endpoints
    assert plain.daemons() == running
    assert load_settings(find_project(plain.root)).brokers == before.kafka_bootstrap_servers
    assert list(tmp_path.glob("registry-*")) == []


def test_a_port_of_the_registry_that_is_held_is_named_with_its_holder(plain: Checkout) -> None:
    with socket.socket() as foreign:
        foreign.bind((ports.LOOPBACK, 0))
        foreign.listen()
        port = foreign.getsockname()[1]
        answer = plain.run("up", "--registry-port", str(port))
    assert answer.returncode == ExitCode.PORT_TAKEN
    assert f"port {port}" in answer.stderr and f"pid {os.getpid()}" in answer.stderr
    assert "--registry-port PORT" in answer.stderr and "Traceback" not in answer.stderr
    assert [service.name for service in plain.stack.status().services] == ["kafka", "postgres"]


def test_a_port_for_a_registry_that_is_left_out_is_a_contradiction(plain: Checkout) -> None:
    answer = plain.run("up", "--no-registry", "--registry-port", "8081")
    assert answer.returncode == ExitCode.CONFIGURATION
    assert "--registry-port" in answer.stderr and "Traceback" not in answer.stderr


def test_a_first_up_that_asks_for_a_registry_makes_it_part_of_the_stack(plain: Checkout) -> None:
    # Given a stack without a registry
    others = plain.daemons()

    # When `up` asks for one on a port, and then does not
    port = ports.choose(set())
    first = plain.run("up", "--registry-port", str(port))
    again = plain.run("up")

    # Then it is there, said and found, and the others were left alone
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert first.stdout == again.stdout
    address = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    assert f"SCHEMA_REGISTRY_URL={address}\n" in first.stdout
    assert set(others) < set(plain.daemons()) and len(plain.daemons()) == 3
    settings = load_settings(find_project(plain.root))
    assert settings.schema_registry_url and settings.schema_registry_url.get_secret_value() == address
    finding = look_at(address)
    assert (finding.state, finding.found) == ("ok", f"{address}, 0 subjects")

    # And `status` tells of it as of the others
    shown = json.loads(plain.run("status", "--json").stdout)
    registry = shown["services"]["registry"]
    assert (registry["state"], registry["version"], registry["port"]) == ("running", "3.3.3", port)
    assert shown["schema_registry_url"] == address
    assert registry["data_bytes"] > 0 and Path(registry["log"]).read_text()

    # And it can be reached from this machine alone
    heard = psutil.Process(registry["pid"]).net_connections("inet")
    listening = {one.laddr.ip for one in heard if one.status == psutil.CONN_LISTEN}
    assert {address.removeprefix("::ffff:") for address in listening} == {ports.LOOPBACK}


def test_ids_and_schemas_survive_a_restart_of_the_stack_and_a_kill(plain: Checkout) -> None:
    # Given a registry with schemas
    stack = plain.stack
    before = stack.up(registry=True)
    promised = {number: register(before, number) for number in range(10)}
    assert len(set(promised.values())) == 10

    # When the stack goes down and up again, then it knows them by their ids
    stack.down()
    assert plain.processes() == []
    assert [one.state for one in stack.status().services] == [Condition.STOPPED] * 3
    assert stack.up(owner_pid=os.getpid()) == before
    assert {number: schema_of(before, known) for number, known in promised.items()} == named(promised)

    # When it is killed right after it has promised more ids, then status says so
    promised |= {number: register(before, number) for number in range(10, 30)}
    pid = stack.status().services[2].pid
    assert pid
    kill(pid)
    assert [one.state for one in stack.status().services][2] is Condition.CRASHED
    assert not (stack.data / "endpoints.json").exists()

    # And it comes back with all of them, gives none a second time, and the stack is still its owner's
    assert stack.add_registry() == before
    assert {number: schema_of(before, known) for number, known in promised.items()} == named(promised)
    assert {number: register(before, number) for number in promised} == promised
    assert register(before, 30) not in promised.values()
    owner = stack.book.load().owner
    assert owner and owner.pid == os.getpid()


def test_a_stack_that_wants_no_registry_any_more_keeps_its_schemas(plain: Checkout) -> None:
    # Given a stack with a registry
    with_it = plain.stack.up(registry=True)
    register(with_it, 1)
    others = [one.pid for one in plain.stack.status().services[:2]]

    # When `up` leaves it out, then it ends, and nothing else does
    answer = plain.run("up", "--no-registry")
    assert answer.returncode == 0 and "SCHEMA_REGISTRY_URL" not in answer.stdout, answer.stderr
    assert sorted(plain.daemons()) == sorted(pid for pid in others if pid)
    assert load_settings(find_project(plain.root)).schema_registry_url is None
    assert (plain.stack.data / "registry" / "registry.mv.db").exists()

    # And data of another version is refused and left alone
    marker = plain.stack.data / "registry" / "VERSION"
    marker.write_text("2.6.1\n")
    with pytest.raises(FarandoleError, match=r"written by Apicurio 2\.6\.1") as caught:
        plain.stack.up(registry=True)
    assert caught.value.exit_code is ExitCode.DATA_VERSION
    assert marker.read_text() == "2.6.1\n"
    assert plain.stack.status().running
    marker.write_text(f"{plain.stack.registry.version}\n")


def test_an_up_killed_while_the_registry_starts_leaves_nothing_that_down_does_not_end(plain: Checkout) -> None:
    # Given an `up` killed by SIGKILL when the registry's process had begun
    command = plain.start("up", "--registry")
    eventually(lambda: process.find(plain.stack.registry.mark), "the process of the registry")
    kill_group(command)
    assert process.find(plain.stack.registry.mark)

    # When it is taken down, then nothing runs
    assert plain.run("down").returncode == 0
    assert plain.processes() == []


def test_a_stack_whose_state_was_lost_is_started_anew_without_what_nobody_asks_for(plain: Checkout) -> None:
    # Given processes of a stack and a registry, whose stack.json cannot be read
    command = plain.start("up", "--registry")
    eventually(lambda: process.find(plain.stack.registry.mark), "the process of the registry")
    kill_group(command)
    orphans = set(plain.processes())
    (plain.stack.data / "stack.json").write_text("{")

    # Then `status` tells of them, and `up` starts those that belong to every stack
    shown = plain.run("status")
    assert shown.returncode == 1 and "silent" in shown.stdout and "Traceback" not in shown.stderr, shown.stderr
    answer = plain.run("up")
    assert answer.returncode == 0, answer.stderr
    assert not orphans & set(plain.processes())
    assert len(plain.daemons()) == 2 and not process.find(plain.stack.registry.mark)


def register(at: Endpoints, number: int) -> int:
    """Register a schema of its own; its id."""
    schema = json.dumps({"type": "record", "name": f"Event{number}", "fields": [{"name": "text", "type": "string"}]})
    return int(ask(at, f"subjects/event{number}-value/versions", {"schema": schema})["id"])


def schema_of(at: Endpoints, number: int) -> str:
    """What the schema with an id is called."""
    return str(json.loads(ask(at, f"schemas/ids/{number}")["schema"])["name"])


def named(numbers: Iterable[int]) -> dict[int, str]:
    """What `register` calls them."""
    return {number: f"Event{number}" for number in numbers}


def ask(at: Endpoints, path: str, body: dict[str, str] | None = None) -> Any:
    """A bare question to the registry."""
    request = urllib.request.Request(
        f"{at.schema_registry_url}/{path}",
        json.dumps(body).encode() if body else None,
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)
