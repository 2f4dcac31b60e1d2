"""The graph says what cannot work: nobody emits what is read, a type on two topics, a cycle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from farandole.cli import app
from farandole.errors import ConfigurationError
from farandole.flow import agent_files, event_classes, load_agents
from farandole.graph import Graph, build, mermaid
from tests.unit.projects import EVENTS, project

GOOD = {"price": ("Placed", "Priced"), "bill": ("Priced", "Billed")}


def graph(root: Path, agents: dict[str, tuple[str, str]], events: str = EVENTS) -> Graph:
    found = project(root, events=events, agents=agents)
    return build(load_agents(agent_files(found)), event_classes(found), "orders")


def test_a_chain_from_the_ingest_type_has_no_problem(tmp_path: Path) -> None:
    assert graph(tmp_path, GOOD).problems == ()


def test_a_type_that_nobody_emits_is_a_problem(tmp_path: Path) -> None:
    (problem,) = graph(tmp_path, {"bill": ("Priced", "Billed")}).problems
    assert "agent bill" in problem
    assert "reads Priced from orders.priced" in problem


def test_the_runtime_s_own_events_may_be_read_by_an_agent(tmp_path: Path) -> None:
    events = EVENTS + "\nfrom farandole.event import JobFailed\n"
    assert graph(tmp_path, GOOD | {"tell": ("JobFailed", "None")}, events).problems == ()


def test_one_type_on_two_topics_is_a_problem(tmp_path: Path) -> None:
    found = project(tmp_path, agents=GOOD)
    other = tmp_path / "agents" / "copy.py"
    other.write_text(
        "from farandole import Agent, Event\n"
        "class Priced(Event, topic='.elsewhere'):\n    number: str\n"
        "agent = Agent('copy')\n@agent.handle\ndef handle(event: Priced) -> None: ...\n"
    )
    (problem,) = build(load_agents(agent_files(found)), event_classes(found), "orders").problems
    assert "Priced lies on 2 topics: orders.elsewhere, orders.priced" in problem


def test_a_cycle_is_a_problem_and_names_its_agents(tmp_path: Path) -> None:
    (problem,) = graph(tmp_path, GOOD | {"again": ("Billed", "Priced")}).problems
    assert "cycle" in problem
    assert {"bill", "again"} <= set(problem.replace(";", " ").split())
    assert "price" not in problem.split(":")[1].split(";")[0].split()


def test_an_agent_that_reads_what_it_emits_is_a_cycle(tmp_path: Path) -> None:
    assert any("cycle" in problem for problem in graph(tmp_path, {"price": ("Placed", "Placed")}).problems)


def test_mermaid_names_every_agent_and_topic_once_as_a_node(tmp_path: Path) -> None:
    lines = mermaid(graph(tmp_path, GOOD)).splitlines()
    assert lines[0] == "flowchart LR"
    assert lines.count('  t_orders_priced[/"orders.priced"/]') == 1
    assert "  t_orders_placed -- Placed --> a_price" in lines
    assert "  a_price -- Priced --> t_orders_priced" in lines


def test_an_agent_that_declares_reasons_leads_to_the_end_of_the_job(tmp_path: Path) -> None:
    found = project(tmp_path, agents=GOOD)
    bill = tmp_path / "agents" / "bill.py"
    declared = "from enum import StrEnum\nclass Why(StrEnum):\n    POOR = 'poor'\nagent = Agent('bill', reasons=Why)"
    bill.write_text(bill.read_text().replace("agent = Agent('bill')", declared))
    made = build(load_agents(agent_files(found)), event_classes(found), "orders")
    assert made.problems == ()
    assert "  a_bill -- JobFailed --> t_orders_failed" in mermaid(made).splitlines()
    assert {node["agent"]: node.get("fails") for node in made.as_dict()["agents"]} == {"bill": ("poor",), "price": None}


def test_the_command_draws_the_chain_and_fails_on_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, agents=GOOD)
    monkeypatch.chdir(tmp_path)
    good = CliRunner().invoke(app, ["graph"])
    assert good.exit_code == 0
    assert good.output.index("Placed") < good.output.index("price") < good.output.index("bill")
    (tmp_path / "agents" / "price.py").unlink()
    bad = CliRunner().invoke(app, ["graph", "--json"])
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["problems"]


def test_an_agent_file_that_does_not_load_is_named_with_its_line(tmp_path: Path) -> None:
    found = project(tmp_path, agents=GOOD)
    (tmp_path / "agents" / "broken.py").write_text("from farandole import Agent\n\nimport no_such_module\n")
    with pytest.raises(ConfigurationError, match=r"broken\.py:3: ModuleNotFoundError"):
        load_agents(agent_files(found))
    (tmp_path / "agents" / "broken.py").write_text("def f(:\n")
    with pytest.raises(ConfigurationError, match=r"broken\.py:1: "):
        load_agents(agent_files(found))


def test_two_agents_of_one_name_are_refused(tmp_path: Path) -> None:
    found = project(tmp_path, agents=GOOD)
    (tmp_path / "agents" / "twin.py").write_text((tmp_path / "agents" / "price.py").read_text())
    with pytest.raises(ConfigurationError, match=r"agent 'price' is also in"):
        load_agents(agent_files(found))
