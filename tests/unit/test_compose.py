"""docker-compose.yml, Dockerfile and .dockerignore, without an engine: valid, and true to the command line and settings."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.main import get_command

from farandole.cli import app
from farandole.settings import Settings, variables
from farandole.stack import archive
from farandole.stack.registry import API
from farandole.testing.containers import KAFKA_IMAGE, KAFKA_SETTINGS, POSTGRES_IMAGE, REGISTRY_IMAGE

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"

SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
ONCE = {name for name, service in SERVICES.items() if service["restart"] == "no"}

#: Of the broker's settings, those that say where it is: other places have other addresses.
ADDRESSES = {
    "KAFKA_LISTENERS",
    "KAFKA_ADVERTISED_LISTENERS",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
    "KAFKA_CONTROLLER_QUORUM_VOTERS",
}

#: What the command line raises for an unknown command, option or argument; typer exports only a class derived from it.
UsageError: Any = typer.BadParameter.__base__

every_service = pytest.mark.parametrize("name", SERVICES)
every_service_of_ours = pytest.mark.parametrize("name", OURS)


def test_the_file_is_what_the_compose_specification_says() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_mistake_in_the_file_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "docker-compose.yml"
    wrong.write_text(COMPOSE.read_text(encoding="utf-8").replace("start_interval", "start_intervall"), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(wrong)],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1


@every_service
def test_its_image_is_pinned(name: str) -> None:
    _, _, tag = SERVICES[name]["image"].rpartition(":")
    assert re.fullmatch(r"\d+(\.\d+)*", tag), SERVICES[name]["image"]


def test_the_images_are_those_that_tests_use() -> None:
    images = [SERVICES[name]["image"] for name in ("kafka", "postgres", "registry")]
    assert images == [KAFKA_IMAGE, POSTGRES_IMAGE, REGISTRY_IMAGE]
    assert REGISTRY_IMAGE.rpartition(":")[2] == archive.locked().version


def test_our_image_carries_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert {service["image"] for service in OURS.values()} == {f"farandole:{version}"}


@every_service
def test_it_has_a_health_check_or_runs_once(name: str) -> None:
    assert ("healthcheck" in SERVICES[name]) != (name in ONCE)


@every_service
def test_it_comes_back_by_itself_unless_it_runs_once(name: str) -> None:
    assert SERVICES[name]["restart"] == ("no" if name in ONCE else "unless-stopped")


@every_service
def test_its_ports_are_bound_to_the_loopback_address(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


@every_service
def test_what_it_depends_on_is_there_and_waited_for(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert other in SERVICES
        assert how["condition"] == ("service_completed_successfully" if other in ONCE else "service_healthy")


def test_the_registry_starts_and_is_used_only_when_asked_for() -> None:
    assert SERVICES["registry"]["profiles"] == ["registry"]
    waiting = [service["depends_on"] for service in SERVICES.values() if "registry" in service.get("depends_on", {})]
    assert waiting and all(depends["registry"]["required"] is False for depends in waiting)
    assert {service["environment"]["SCHEMA_REGISTRY_URL"] for service in OURS.values()} == {"${SCHEMA_REGISTRY_URL:-}"}


def test_the_address_of_the_registry_that_the_file_names_is_its_own() -> None:
    (address,) = re.findall(r"SCHEMA_REGISTRY_URL=(\S+) docker compose --profile registry", COMPOSE.read_text("utf-8"))
    assert address == f"http://registry:8080{API}"
    assert f"http://localhost:8080{API}/" in SERVICES["registry"]["healthcheck"]["test"][1]
    assert SERVICES["registry"]["ports"][0].endswith(":8080")


def test_the_registry_keeps_its_tables_out_of_the_schema_of_the_runtime() -> None:
    """Postgres looks for a schema called like the user first, and user and schema are both called farandole."""
    environment = SERVICES["registry"]["environment"]
    assert environment["APICURIO_DATASOURCE_USERNAME"] == Settings(namespace="").schema_name
    assert environment["APICURIO_DATASOURCE_URL"].endswith("?currentSchema=public")


def test_what_keeps_data_keeps_it_in_a_named_volume() -> None:
    named = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["volumes"].keys()
    used = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert used == named == {"kafka", "postgres"}


def test_the_broker_is_set_up_as_in_tests() -> None:
    ours = SERVICES["kafka"]["environment"]
    differs = {key for key, value in KAFKA_SETTINGS.items() if ours.get(key) != value}
    assert differs <= ADDRESSES


def test_the_broker_is_told_to_this_machine_where_it_is_mapped() -> None:
    advertised = dict(re.findall(r"(\w+)://([^,]+)", SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]))
    (mapped,) = SERVICES["kafka"]["ports"]
    assert mapped == "127.0.0.1:{0}:{0}".format(advertised["HOST"].partition(":")[2])
    assert {service["environment"]["KAFKA_BOOTSTRAP_SERVERS"] for service in OURS.values()} == {advertised["PLAINTEXT"]}


def test_every_agent_file_has_its_service_and_no_service_an_agent_that_is_gone() -> None:
    files = {f"agents/{path.name}" for path in (ROOT / "agents").glob("*.py") if path.name[0] not in "_."}
    served = [service["command"][1] for service in OURS.values() if service["command"][0] == "run"]
    assert sorted(served) == sorted(files)


@every_service_of_ours
def test_its_command_is_one_of_the_command_line(name: str) -> None:
    _parse(OURS[name]["command"])


@every_service_of_ours
def test_its_health_check_is_one_of_the_command_line(name: str) -> None:
    if name not in ONCE:
        how, program, *arguments = OURS[name]["healthcheck"]["test"]
        assert (how, program) == ("CMD", "farandole")
        _parse(arguments)


@pytest.mark.parametrize("wrong", [["runn", "agents/act.py"], ["run", "--forever", "agents/act.py"], ["run"]])
def test_a_command_that_is_not_there_would_be_found(wrong: list[str]) -> None:
    with pytest.raises(UsageError):
        _parse(wrong)


@every_service_of_ours
def test_its_variables_are_those_of_the_settings(name: str) -> None:
    assert OURS[name]["environment"].keys() <= set(variables())


@every_service_of_ours
def test_its_values_are_of_the_right_kind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in variables():
        monkeypatch.delenv(variable, raising=False)
    for variable, value in OURS[name]["environment"].items():
        monkeypatch.setenv(variable, re.sub(r"\$\{\w+:-(\w*)\}", r"\1", value))
    settings = Settings()
    assert settings.brokers == "kafka:9092"
    assert settings.database == "postgresql://farandole:farandole@postgres:5432/farandole"
    assert (settings.anthropic_api_key, settings.smtp_url) == (None, None)


@every_service_of_ours
def test_it_may_drain_before_it_is_killed(name: str) -> None:
    if name not in ONCE:
        patience = float(OURS[name]["stop_grace_period"].removesuffix("s"))
        assert patience > Settings.model_fields["grace_seconds"].default


# --- the image ----------------------------------------------------------------------------------------------------------

INSTRUCTIONS = [
    (line.split(maxsplit=1)[0], line.split(maxsplit=1)[1])
    for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
STAGES = [argument.split() for word, argument in INSTRUCTIONS if word == "FROM"]


def test_the_image_runs_as_nobody_of_importance() -> None:
    last_stage = INSTRUCTIONS[max(i for i, (word, _) in enumerate(INSTRUCTIONS) if word == "FROM") :]
    user = [argument for word, argument in last_stage if word == "USER"][-1]
    assert user.partition(":")[0] not in ("", "0", "root")
    assert int(user.partition(":")[0]) > 0  # a number: Kubernetes cannot tell a name from root's


def test_the_image_is_built_in_stages_from_one_pinned_base() -> None:
    assert len(STAGES) > 1
    assert len({stage[0] for stage in STAGES}) == 1
    assert re.fullmatch(r"python:3\.13\.\d+-slim-\w+", STAGES[0][0])


def test_the_image_starts_the_command_line() -> None:
    (entry,) = [argument for word, argument in INSTRUCTIONS if word == "ENTRYPOINT"]
    assert entry == '["farandole"]'


def test_the_image_holds_what_the_agents_import() -> None:
    imported = {
        name.partition(".")[0]
        for path in (ROOT / "agents").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _imported(node)
    }
    foreign = imported - {"agents", "schemas", "farandole"} - set(sys.stdlib_module_names)
    of_the_wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    there = {re.split(r"[^\w-]", one)[0].replace("-", "_") for one in of_the_wheel}
    there |= {found for word, argument in INSTRUCTIONS if word == "RUN" for found in re.findall(r"(\w+)==", argument)}
    assert foreign - there == set()


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [name.name for name in node.names] if isinstance(node, ast.Import) else []


def test_everything_that_is_copied_is_there_and_not_ignored() -> None:
    copied = [shlex.split(argument) for word, argument in INSTRUCTIONS if word == "COPY"]
    sources = {source for parts in copied if not parts[0].startswith("--from=") for source in parts[:-1]}
    assert {"schemas", "agents", "projections", "farandole", "pyproject.toml"} <= sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert [source for source in sources if _ignored(source)] == []
    assert [other for other in (".venv", ".farandole", ".git", "tests") if not _ignored(other)] == []


def _ignored(path: str) -> bool:
    """The last rule of .dockerignore that fits decides."""
    ignored = False
    for rule in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if rule and not rule.startswith("#") and fnmatch(path, rule.removeprefix("!")):
            ignored = not rule.startswith("!")
    return ignored


def _parse(arguments: list[str]) -> None:
    """Raises UsageError when the command line has no such command, option or argument. Runs nothing."""
    command: Any = get_command(app)
    context = command.make_context("farandole", list(arguments))
    while hasattr(command, "resolve_command"):  # a group of commands
        given = [*context._protected_args, *context.args]
        if not given and command.invoke_without_command:  # which is a command by itself
            return
        name, command, rest = command.resolve_command(context, given)
        context = command.make_context(name, rest, parent=context)
