"""Names of events: one for Avro, those it had before, and smaller classes of other people's events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from farandole import Agent, Event
from farandole.client import Client
from farandole.contracts import codec, framing
from farandole.contracts.codec import Writer, contract, writer
from farandole.contracts.deriving import derive
from farandole.contracts.schema_log import SchemaLog
from farandole.envelope import Emitter, begin, follow
from farandole.errors import ConfigurationError
from farandole.flow import event_classes
from farandole.kafka import Record
from farandole.project import Project
from farandole.records import decode
from farandole.settings import Settings

TRACE = "01890a5d-ac96-774b-bcce-b302099a8057"


class Asked(Event, topic="jobs.asked", ingest=True):
    text: str
    tone: str = "plain"


class Inquired(Event, topic="jobs.asked", ingest=True, aliases=("Asked", "Queried")):
    text: str
    channel: str | None = None


class Question(Event, topic="jobs.asked", name="Inquired", view=True):
    """What another team needs of it."""

    text: str


OLD, NEW, VIEW = (contract(event, "jobs") for event in (Asked, Inquired, Question))


def read(made: codec.Contract, by: Writer, event: Event) -> dict[str, Any]:
    raw = begin(TRACE, Emitter("client"), made.writer.identity)
    record = Record("jobs.asked", 0, 0, 0, None, made.encode(raw, event), [])
    fields = decode(record, made.writer, Settings(), by).fields
    return {name: value for name, value in fields.items() if name not in raw} | {"event_id": fields["event_id"]}


def test_what_a_class_writes_is_read_under_its_new_name_and_back() -> None:
    forth = read(OLD, NEW.writer, Asked(text="hello", tone="rude"))
    back = read(NEW, OLD.writer, Inquired(text="hello", channel="web"))
    assert (forth["text"], forth["channel"]) == ("hello", None)
    assert (back["text"], back["tone"]) == ("hello", "plain")
    assert forth["event_id"] == back["event_id"], "a key that both submit is one event"


def test_a_strangers_record_by_a_later_name_is_read_by_the_older_class() -> None:
    bare = writer(derive(Inquired, "jobs", envelope=False))
    value = framing.single_object(bare.fingerprint) + b"\x0ahello\x00"
    fields = decode(Record("jobs.asked", 0, 0, 0, b"k", value, []), bare, Settings(), OLD.writer).fields
    assert (fields["text"], fields["tone"]) == ("hello", "plain")


def test_ids_stay_as_they_were_when_a_class_is_renamed_and_renamed_again() -> None:
    class Requested(Event, topic="jobs.asked", aliases=("Asked", "Queried", "Inquired")):
        text: str

    identities = {made.writer.identity for made in (OLD, NEW, contract(Requested, "jobs"))}
    assert identities == {"jobs.Asked"}
    cause = begin(TRACE, Emitter("client"), "jobs.Asked")
    found = {follow([cause], Emitter("answer"), name, 0)["event_id"] for name in identities}
    assert len(found) == 1


def test_the_meaning_of_an_event_is_known_by_its_earlier_names_too() -> None:
    log = SchemaLog(Settings())
    log.add(NEW.writer)
    stranger = writer({"type": "record", "name": "Asked", "namespace": "jobs", "fields": []})
    assert log.meaning(stranger) is NEW.writer
    assert log.names() == ["jobs.Inquired"]
    log.add(OLD.writer)
    assert log.meaning(stranger) is OLD.writer, "its own declaration comes first"


def test_names_stand_in_the_schema_and_a_name_of_its_own_in_place_of_the_classs() -> None:
    class Stamped(Event, topic="jobs.stamped", name="Franked"):
        pass

    assert (Stamped.avro_name(), derive(Stamped, "jobs")["name"]) == ("Franked", "Franked")
    assert "aliases" not in derive(Stamped, "jobs")
    assert NEW.writer.schema["aliases"] == ["Asked", "Queried"]
    assert NEW.writer.aliases == ("jobs.Asked", "jobs.Queried")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"aliases": "Asked"}, r"event Wrong: aliases is 'Asked'; expected a tuple, such as \('Asked',\)"),
        ({"aliases": ("jobs.Asked",)}, "event Wrong: 'jobs.Asked' is no Avro name; expected letters, digits and _"),
        ({"aliases": (Asked,)}, "is no Avro name"),
        ({"name": "1st"}, "event Wrong: '1st' is no Avro name"),
        ({"name": ""}, "event Wrong: '' is no Avro name"),
        ({"aliases": ("Wrong",)}, "event Wrong: 'Wrong' is its name, and cannot be an earlier one"),
        ({"aliases": 5}, "event Wrong: aliases is 5; expected a tuple of names"),
        ({"stage": 5}, "event Wrong: stage is 5; expected a text"),
        ({"partitions": 0}, "event Wrong: partitions is 0; expected 1 or more"),
        ({"retention_days": "x"}, "event Wrong: retention_days is 'x'; expected a number above 0"),
        ({"name": "long"}, "Wrong: 'long' is no name of a type in Avro"),
        ({"alias": "Asked"}, "event Wrong: unknown option 'alias'; expected topic, .*, name, aliases, view"),
    ],
)
def test_a_name_that_cannot_be_is_refused_when_the_class_is_defined(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        type("Wrong", (Event,), {}, topic="jobs.wrong", **options)


def test_an_agent_reads_by_every_name_and_prefers_the_present_one() -> None:
    agent = Agent("answer")

    @agent.handle
    def answer(event: Asked | Inquired) -> None: ...

    reads = agent.wiring("jobs").reads
    expected: dict[str, type[Event]] = {
        "jobs.Asked": Asked,
        "jobs.Queried": Inquired,
        "jobs.Inquired": Inquired,
    }
    assert {name: made.event for name, made in reads.items()} == expected


def test_two_classes_of_one_name_in_one_handler_are_refused() -> None:
    agent = Agent("answer")

    @agent.handle
    def answer(event: Inquired | Question) -> None: ...

    with pytest.raises(ConfigurationError, match=r"Inquired and Question are both the event jobs\.Inquired"):
        agent.wiring("jobs")


def test_a_view_reads_what_it_names_whatever_else_is_in_it() -> None:
    assert read(NEW, VIEW.writer, Inquired(text="hello", channel="web")).keys() == {"text", "event_id"}


async def test_a_view_is_never_written() -> None:
    agent = Agent("answer")

    @agent.handle
    def answer(event: Asked) -> Question | None: ...

    with pytest.raises(ConfigurationError, match="answer: Question is a view, which is read only; emit the event"):
        agent.wiring("jobs")
    with pytest.raises(ConfigurationError, match=r"Question is a view of jobs\.Inquired: it is read only"):
        VIEW.encode(begin(TRACE, Emitter("client"), "jobs.Inquired"), Question(text="hello"))
    nowhere = Settings(kafka_bootstrap_servers="127.0.0.1:1")
    async with Client(nowhere) as client:
        with pytest.raises(ConfigurationError, match="Question is a view, which is read only; submit the event"):
            await client.submit(Question(text="hello"))


CLASSES = """
from farandole import Event

class Inquired(Event, topic="jobs.asked", aliases=("Asked",)): ...
class Question(Event, topic="jobs.asked", name="Inquired", view=True): ...
"""


def test_a_flow_has_each_name_once_earlier_ones_and_views_apart(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    file = tmp_path / "schemas/names.py"
    file.write_text(CLASSES)
    assert [event.__name__ for event in event_classes(Project(tmp_path, {}))] == ["Inquired"]
    (tmp_path / "schemas/older.py").write_text(CLASSES.replace("Inquired", "Asked").replace('"Asked"', '"Queried"'))
    with pytest.raises(ConfigurationError, match=r"older\.py: a second event class is called Asked; names are unique"):
        event_classes(Project(tmp_path, {}))
