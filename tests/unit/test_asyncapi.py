"""The AsyncAPI document of a small flow: what it tells of topics, events and agents, and what it keeps to itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from farandole.cli import app
from farandole.errors import ExitCode
from tests.unit.projects import project

AGENTS = {"price": ("Placed", "Priced"), "bill": ("Priced", "Billed")}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["graph", "--asyncapi", *arguments])


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project(tmp_path, agents=AGENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(*arguments: str) -> dict[str, Any]:
    ended = run(*arguments)
    assert ended.exit_code == 0, ended.output
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.usefixtures("orders")
def test_every_reference_leads_somewhere_and_a_message_of_an_operation_is_one_of_its_channel() -> None:
    found = document()
    names = list(_references(found))
    assert names
    for name in names:
        place: Any = found
        for part in name.removeprefix("#/").split("/"):
            place = place[part]
    for operation in found["operations"].values():
        channel = operation["channel"]["$ref"]
        assert all(message["$ref"].startswith(f"{channel}/messages/") for message in operation["messages"])


def _references(value: Any) -> Any:
    if isinstance(value, list):
        for one in value:
            yield from _references(one)
    elif isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        for one in value.values():
            yield from _references(one)


@pytest.mark.usefixtures("orders")
def test_agents_are_operations_with_their_groups_and_the_namespace_is_in_every_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FARANDOLE_NAMESPACE", "team")
    found = document()
    operations = found["operations"]
    assert {name for name in operations if name.startswith("price.")} == {
        "price.receive", "price.wake", "price.dead", "price.send.orders.priced", "price.send.orders.failed",
        "price.send.orders.dead_lettered",
    }  # fmt: skip
    assert operations["price.receive"]["action"] == "receive"
    assert operations["price.receive"]["bindings"]["kafka"]["groupId"]["enum"] == ["team.price"]
    assert operations["price.send.orders.priced"]["action"] == "send"
    assert {name: channel["address"] for name, channel in found["channels"].items()} == {
        name: f"team.{name}" for name in found["channels"]
    }


@pytest.mark.usefixtures("orders")
def test_what_comes_from_outside_may_leave_the_envelope_out() -> None:
    found = document()
    assert [message["$ref"].split("/")[-1] for message in found["operations"]["submit.Placed"]["messages"]] == [
        "Placed",
        "Placed.payload",
    ]
    messages = found["components"]["messages"]
    names = {
        name: [field["name"] for field in messages[name]["payload"]["schema"]["fields"]]
        for name in messages
        if "Placed" in name
    }
    assert names["Placed.payload"] == ["number", "amount"]
    assert names["Placed"][-2:] == ["number", "amount"]
    assert "event_id" in names["Placed"]
    assert "Priced.payload" not in messages


@pytest.mark.usefixtures("orders")
def test_no_address_and_no_secret_of_the_settings_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in {
        "KAFKA_BOOTSTRAP_SERVERS": "inside.example.com:9092",
        "DATABASE_URL": "postgresql://ann:secret@inside.example.com/db",
        "SCHEMA_REGISTRY_URL": "http://ann:secret@inside.example.com:8081",
        "ANTHROPIC_API_KEY": "secret",
    }.items():
        monkeypatch.setenv(variable, value)
    text = run().stdout
    assert "secret" not in text
    assert "inside" not in text
    assert "servers" not in json.loads(text)
    assert document("--server", "production=kafka.example.com:9092")["servers"] == {
        "production": {"host": "kafka.example.com:9092", "protocol": "kafka"}
    }


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    "server",
    [
        "kafka.example.com:9092",
        "a b=c:1",
        "x=https://kafka",
        "x=ann:secret@host:9092",
        "x=",
        "é=c:1",
        "x=host",
        "x=host:0",
        "x=host:99999",
        "x=c:1\n",
    ],
)
def test_a_server_that_is_no_name_and_address_is_refused(server: str) -> None:
    ended = run("--server", server)
    assert ended.exit_code == ExitCode.CONFIGURATION
    assert "expected NAME=HOST:PORT" in ended.stderr
    assert "secret" not in ended.stderr


@pytest.mark.usefixtures("orders")
def test_servers_of_one_name_and_without_a_document_are_refused() -> None:
    ended = run("--server", "x=c:1", "--server", "x=d:1")
    assert (ended.exit_code, "'x': given twice" in ended.stderr) == (ExitCode.CONFIGURATION, True)


def test_title_and_version_are_those_of_the_project_where_it_has_any(orders: Path) -> None:
    assert (document()["info"]["title"], document()["info"]["version"]) == ("orders", "0")
    table = '[project]\nname = "shop"\nversion = "1.2"\ndescription = "Orders."\n'
    (orders / "pyproject.toml").write_text(table + '[tool.farandole]\nflow = "orders"\n')
    info = document()["info"]
    assert (info["title"], info["version"]) == ("shop", "1.2")
    assert info["description"].startswith("Orders. ")


@pytest.mark.usefixtures("orders")
def test_the_form_of_a_topic_is_told_in_the_types_of_the_binding() -> None:
    topic = document()["channels"]["orders.placed"]["bindings"]["kafka"]
    assert topic["partitions"] == 6
    assert topic["topicConfiguration"] == {"cleanup.policy": ["delete"], "retention.ms": 30 * 86_400_000}
