"""The doctor names what is wrong and what to do, and goes on with what can still be examined."""

from __future__ import annotations

from pathlib import Path

import pytest

from farandole import brokers, doctor, kafka, migrate, postgres, projections, topics
from farandole.checks import services
from farandole.contracts import files
from farandole.contracts.schema_log import SCHEMA_TOPIC
from farandole.examination import Finding
from farandole.flow import agent_files, load_agents
from farandole.settings import Settings
from farandole.testing.flow import environment
from tests.kafka_log import KafkaLog
from tests.unit.projects import project

CHECKS = [
    "project",
    "settings",
    "agents",
    "schemas",
    "broker",
    "topics",
    "database",
    "migrations",
    "projections",
    "parked",
    "work",
]
#: What the last check counts, once there is something to count in.
TROUBLES = ["parked", "gaps", "conflicts", "blocked"]
AGENTS = {"price": ("Placed", "Priced"), "bill": ("Priced", "Billed")}


@pytest.fixture
def here(tmp_path: Path, farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of flow `orders` as working folder, its settings in the environment."""
    for variable, value in environment(farandole_settings.model_copy(update={"flow": "orders"})).items():
        monkeypatch.setenv(variable, value)
    files.write(project(tmp_path, agents=AGENTS), "orders")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found() -> dict[str, list[Finding]]:
    by_check: dict[str, list[Finding]] = {}
    for finding in doctor.examine():
        by_check.setdefault(finding.check, []).append(finding)
    return by_check


def test_before_the_first_start_nothing_is_a_problem(here: Path) -> None:
    findings = found()
    assert list(findings) == CHECKS
    assert {finding.state for group in findings.values() for finding in group} <= {"ok", "warning", "skipped"}
    assert findings["migrations"][0].advice.startswith("farandole migrate")
    assert {finding.state for finding in findings["topics"]} == {"warning"}
    assert findings["projections"][0].state == "skipped"


def test_when_all_is_there_all_is_well(here: Path, farandole_settings: Settings) -> None:
    settings = farandole_settings.model_copy(update={"flow": "orders"})
    topics.ensure(settings, topics.of_agents(settings, load_agents(agent_files(project(here))).values()))
    migrate.migrate(settings)
    assert found()["parked"][0].state == "skipped"
    projections.install(settings, projections.discover(None))
    findings = found()
    assert findings["topics"][0].found == "12, all as declared"
    assert findings["database"][0].state == "ok"
    assert [(name, findings[name][0].found) for name in TROUBLES] == [(name, "0") for name in TROUBLES]

    with postgres.connect(settings) as connection:
        connection.execute(
            "INSERT INTO projector_offset (topic, partition, next_offset, gap) VALUES ('orders.placed', 0, 7, 'it is gone')"
        )
    counted, gap = found()["gaps"]
    assert (counted.found, gap.state) == ("1", "problem")
    assert gap.found == "the projector stands still in orders.placed [0] at offset 7: it is gone"
    assert "`farandole projector skip-gap orders.placed 0 --at earliest`" in gap.advice


def test_each_problem_is_named_with_what_to_do(here: Path, farandole_settings: Settings) -> None:
    (here / "schemas" / "orders.Placed.avsc").unlink()
    (here / "agents" / "price.py").unlink()
    wrong = topics.Wanted(SCHEMA_TOPIC, 1, {"cleanup.policy": "delete"})
    topics.ensure(farandole_settings, [wrong])
    findings = found()
    assert "reads Priced" in findings["agents"][0].found
    assert findings["schemas"][0].advice == "farandole schemas write"
    assert any("is not compacted" in finding.found and finding.state == "problem" for finding in findings["topics"])


def test_what_needs_a_missing_service_is_skipped(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "ANSWER", 1.0)
    monkeypatch.setattr(postgres, "ANSWER", 2)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:secret@127.0.0.1:1/d")
    findings = found()
    assert [findings[check][0].state for check in ("broker", "database")] == ["problem", "problem"]
    assert {findings[check][0].state for check in ("topics", "migrations", "projections", "parked")} == {"skipped"}
    assert "secret" not in str(findings)


def test_the_brokers_of_the_tests_are_not_among_the_suspects(farandole_settings: Settings) -> None:
    ((host, port),) = [place.split(":") for place in farandole_settings.brokers.split(",")]
    assert brokers.metadata_version(host, int(port)) == 29  # 4.2-IV1
    assert brokers.suspects(farandole_settings) == []


def test_a_broker_of_a_suspect_release_is_named_with_what_can_happen(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(brokers.SUSPECTS, 29, "4.2")  # as if it were the release under the tests
    (warning,) = [finding for finding in found()["broker"] if "4.2" in finding.found]
    assert warning.state == "warning" and "KAFKA-20734" in warning.advice


def test_a_database_reached_directly_keeps_its_sessions(farandole_settings: Settings) -> None:
    with postgres.connect(farandole_settings) as connection:
        assert services.keeps_sessions(farandole_settings, connection)


def test_who_is_behind_without_a_worker_and_who_stands_still_is_named(here: Path, farandole_settings: Settings) -> None:
    settings = farandole_settings.model_copy(update={"flow": "orders"})
    topics.ensure(settings, topics.of_agents(settings, load_agents(agent_files(project(here))).values()))
    migrate.migrate(settings)
    assert [finding.state for finding in found()["work"]] == ["ok"]
    KafkaLog(settings.brokers, settings.namespace).write("orders.placed", [(None, b"x")] * 3)
    with postgres.connect(settings) as connection:
        connection.execute(
            "INSERT INTO agent_offset (agent, topic, partition, gap) VALUES ('bill', 'orders.priced', 0, 'it is gone')"
        )
    assert sorted((finding.state, finding.found) for finding in found()["work"]) == [
        ("problem", "bill: gap: orders.priced [0]: it is gone"),
        ("warning", "price is 3 records behind and has no worker"),
    ]
