"""Views: a smaller class of another team's event, under its Avro name, is enough to read it, and never writes it."""

from __future__ import annotations

import types
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from typer.testing import CliRunner

from farandole import Event, ids, load_agent
from farandole.cli import app
from farandole.contracts import codec, views
from farandole.contracts.deriving import derive
from farandole.contracts.lookup import Schemas
from farandole.envelope import Emitter, begin
from farandole.errors import ConfigurationError, ExitCode, Poison
from farandole.flow import agent_files, event_classes, load_agents
from farandole.graph import Graph, build, mermaid
from farandole.kafka import Record
from farandole.project import Project, require_project
from farandole.records import decode
from farandole.settings import Settings
from farandole.testing import deliver
from schemas import jobs
from schemas.jobs import Submitted

SUBMITTED = Submitted(message_id="m-1", sender="a@example.com", received_at=datetime(2026, 1, 2, tzinfo=UTC))

#: In another repository, which has no class of the whole event.
THEIRS = """
from farandole import Event

class Mail(Event, topic=".submitted", name="Submitted", view=True):
    message_id: str
    sender: str = ""

class Counted(Event, topic=".counted"):
    sender: str
"""
AGENT = """
from farandole import Agent
from schemas.counting import *

agent = Agent("count")

@agent.handle
def count(mail: Mail) -> {emits}:
    return Counted(sender=mail.sender)
"""


def another(root: Path, events: str = THEIRS, emits: str = "Counted") -> Project:
    """Another project in the same flow, which counts who writes."""
    (root / "pyproject.toml").write_text('[tool.farandole]\nflow = "jobs"\n')
    for folder in ("schemas", "agents"):
        (root / folder).mkdir()
    (root / "schemas" / "counting.py").write_text(events)
    (root / "agents" / "count.py").write_text(AGENT.format(emits=emits))
    return require_project(root)


def graph(project: Project) -> Graph:
    return build(load_agents(agent_files(project)), event_classes(project), "jobs")


def record(event: Event) -> Record:
    made = codec.contract(type(event), "jobs")
    value = made.encode(begin(ids.new_trace_id(), Emitter("client"), made.writer.name), event)
    return Record(made.topic, 0, 0, 0, None, value, [])


async def test_an_agent_of_another_project_reads_our_event_by_a_class_of_two_fields(tmp_path: Path) -> None:
    agent = load_agent(another(tmp_path).agents / "count.py")
    reads = agent.wiring("jobs").reads["jobs.Submitted"]
    whole = codec.contract(Submitted, "jobs").writer
    mail = reads.read(decode(record(SUBMITTED), whole, Settings(), reads.writer).fields)
    assert mail.model_dump() == {"message_id": "m-1", "sender": "a@example.com"}
    out = await deliver(agent, mail)
    assert [event.sender for event in out.events] == ["a@example.com"]  # type: ignore[union-attr]


def test_a_view_has_no_schema_file_and_the_graph_knows_that_others_emit_it(tmp_path: Path) -> None:
    project = another(tmp_path)
    assert [event.__name__ for event in event_classes(project)] == ["Counted"]
    found = graph(project)
    assert found.problems == ()
    assert found.views == ("Submitted",)
    assert "  others((other projects)) -- Submitted --> t_jobs_submitted" in mermaid(found).splitlines()


def test_the_drawing_says_who_emits_what_is_viewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(another(tmp_path).root)
    ended = CliRunner().invoke(app, ["graph"])
    assert ended.exit_code == 0, ended.output
    assert "Submitted, emitted by another project" in ended.stdout


def test_emitting_a_view_is_refused_when_the_agent_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(another(tmp_path, emits="Mail").root)
    ended = CliRunner().invoke(app, ["graph"])
    assert ended.exit_code == ExitCode.CONFIGURATION
    assert "agents/count.py:7 count: Mail is a view, which is read only" in ended.stderr


def wrong(kind: object, name: str = "sender") -> type[Event]:
    namespace = {"__annotations__": {"message_id": str, name: kind}, "__module__": __name__}
    arguments: dict[str, Any] = {"topic": ".submitted", "name": "Submitted", "view": True}
    return types.new_class("Mail", (Event,), arguments, lambda body: body.update(namespace))


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (wrong(str, "sendr"), "the event has no field 'sendr'; expected one of message_id, sender, subject, text"),
        (wrong(int), "field 'sender' is string in the event, long in the view"),
        (wrong(jobs.Category, "source"), "field 'source' is string in the event, Category in the view"),
    ],
)
def test_a_view_that_does_not_fit_its_event_is_refused_before_a_record_is_read(view: type[Event], said: str) -> None:
    """Without that, each record would be a dead letter."""
    made = codec.contract(view, "jobs")
    schemas = Schemas(Settings())
    views.check([made], schemas)  # nothing is known of the event yet
    schemas.add(codec.contract(Submitted, "jobs").writer)
    with pytest.raises(ConfigurationError, match=r"Mail is a view of jobs\.Submitted, and does not fit it") as caught:
        views.check([made], schemas)
    assert said in str(caught.value)
    with pytest.raises(Poison):
        decode(record(SUBMITTED), codec.contract(Submitted, "jobs").writer, Settings(), made.writer)


def test_a_view_with_fewer_fields_or_with_defaults_fits() -> None:
    class Mail(Event, topic=".submitted", name="Submitted", view=True):
        subject: str
        priority: int = 3

    views.misfit(codec.contract(Mail, "jobs"), derive(Submitted, "jobs"))


def test_a_view_of_the_project_s_own_event_that_does_not_fit_is_a_problem_of_the_graph(tmp_path: Path) -> None:
    events = THEIRS + "class Submitted(Event, topic='.submitted', ingest=True):\n    sender: str\n"
    (problem,) = graph(another(tmp_path, events)).problems
    assert problem == (
        "Mail is a view of jobs.Submitted, and does not fit it: the event has no field 'message_id'; "
        "expected one of sender, or a default"
    )


def test_a_view_of_an_event_that_its_topic_does_not_have_is_a_problem_of_the_graph(tmp_path: Path) -> None:
    events = THEIRS.replace('name="Submitted"', 'name="Submited"')
    events += "class Submitted(Event, topic='.submitted', ingest=True):\n    sender: str\n"
    problems = graph(another(tmp_path, events)).problems
    assert "Mail is a view of Submited; jobs.submitted has Submitted" in problems


class Category(StrEnum):
    """Fewer words than the event's own class of this name has."""

    REFUND = "refund"
    REST = "other"

    __unknown__ = "other"


class Draft(BaseModel):
    """Fewer fields than the record has."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    to: str


class Answer(Event, topic=".acted", name="Acted", view=True):
    """What a mail of refunds is answered with."""

    category: Category
    draft: Draft | None = None


@pytest.mark.parametrize(("written", "read"), [("refund", "refund"), ("spam", "other")])
def test_records_and_enums_in_a_view_may_be_smaller_too(written: str, read: str) -> None:
    event = jobs.Acted(
        message_id="m-1", category=jobs.Category(written), urgency=jobs.Urgency.LOW, language="en",
        decision=jobs.Decision.REPLY, why="", decided_by="", draft=jobs.Draft(to="a@example.com", subject="x", text="y"),
    )  # fmt: skip
    view, whole = codec.contract(Answer, "jobs"), codec.contract(jobs.Acted, "jobs").writer
    views.misfit(view, whole.schema)
    found = view.read(decode(record(event), whole, Settings(), view.writer).fields)
    assert found == Answer(category=Category(read), draft=Draft(to="a@example.com"))
