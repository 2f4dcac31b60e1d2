"""`schemas python`: the classes written from schemas derive those schemas again, and what no class can hold is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from datetime import date, time, timedelta
from decimal import Decimal
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from uuid import UUID

import fastavro
import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from typer.testing import CliRunner

from farandole import Event, personal
from farandole.cli import app
from farandole.contracts.codec import contract, decode, lenient, writer
from farandole.contracts.deriving import derive
from farandole.contracts.teams.python_source import source
from farandole.errors import ConfigurationError, ExitCode
from farandole.flow import RUNTIME_EVENTS
from tests.commands import ROOT

OURS = sorted((ROOT / "schemas").glob("*.avsc"))


def classes(text: str) -> types.ModuleType:
    """The module that a source makes, as an import would."""
    module = types.ModuleType("written_by_schemas_python")
    sys.modules[module.__name__] = module
    exec(compile(text, module.__name__, "exec"), vars(module))
    return module


def again(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that the class written from `schema` derives."""
    event = getattr(classes(source([schema])), schema["name"])
    return derive(event, schema["namespace"])


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_the_class_written_from_a_schema_of_this_project_derives_that_schema(path: Path) -> None:
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert again(schema) == schema


class Mood(StrEnum):
    CALM = "calm"
    NONE = "None"
    OTHER = "other"

    __unknown__ = "other"


class Inner(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field("x", description='says "so"')
    mood: Mood = Mood.CALM
    children: list[Inner] = []


# Names for types that fields are called like.
Day: TypeAlias = date
Text: TypeAlias = str
Nested: TypeAlias = Inner


class Everything(Event, topic="jobs.everything", stage="all", terminal="failed", ingest=True, aliases=("All",)):
    r"""One field of each kind, \ and "quotes" included, in words enough that the line is too long for one line of
    source, and "ends so"."""

    date: Day
    clock: time
    span: timedelta
    str: Text = personal("it's", description="a field that is called like its type")
    ref: UUID
    at: AwareDatetime
    price: Annotated[Decimal, Field(max_digits=12, decimal_places=2)]
    share: float = 1.5
    flag: bool = False
    level: int | None = -3
    counts: dict[Text, int] = {}
    tags: list[Text] = ["a", 'b"c']
    Inner: Nested
    inner: Nested | None = None
    many: list[dict[Text, Mood | None]]
    match: int


def test_the_class_written_from_a_schema_with_everything_derives_it_again() -> None:
    schema = derive(Everything, "jobs")
    assert again(schema) == schema


def test_the_source_is_formatted_and_passes_the_checks(tmp_path: Path) -> None:
    file = tmp_path / "theirs.py"
    file.write_text(source([*(json.loads(path.read_text()) for path in OURS), derive(Everything, "jobs")]))
    for command in (["format", "--check"], ["check", "--select", "E,F,I,UP,B,N"]):
        line = [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "120", file.name]
        ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr


def foreign(*fields: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": list(fields),
        "topic": "shop.orders",
        **more,
    }


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"name": "size", "type": "int"}, r"shop\.Order\.size: int has no class form here; .*--view"),
        ({"name": "share", "type": ["null", "float"]}, r"shop\.Order\.share: float has no class form"),
        (
            {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 16}},
            r"shop\.Order\.hash: a fixed of 16 bytes",
        ),
        ({"name": "x", "type": "null"}, r"shop\.Order\.x: null has no class form"),
        ({"name": "x", "type": ["null"]}, r"shop\.Order\.x: it is always null"),
        ({"name": "x", "type": {"type": "long", "logicalType": "timestamp-millis"}}, r"long \(timestamp-millis\)"),
        ({"name": "x", "type": {"type": "array", "items": "int"}}, r"shop\.Order\.x: int"),
        ({"name": "x", "type": ["null", "long", "double"]}, r"shop\.Order\.x: int \| float cannot be told apart"),
        (
            {"name": "x", "type": ["string", {"type": "string", "logicalType": "uuid"}]},
            r"str \| UUID cannot be told apart",
        ),
    ],
)
def test_what_no_class_can_hold_is_refused_with_schema_and_field_and_left_out_of_a_view(field: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        source([foreign({"name": "number", "type": "string"}, field)])
    view = classes(source([foreign({"name": "number", "type": "string"}, field)], view=True)).Order
    assert view.__event__.view
    narrow = '"int"' in json.dumps(field) or '"float"' in json.dumps(field)
    assert set(view.model_fields) == {"number"} | ({field["name"]} if narrow else set())


def test_a_field_whose_name_python_or_pydantic_keeps_has_it_as_its_alias() -> None:
    names = ["class", "_id", "model_config", "model_dump", "json", "avro_name", "match"]
    schema = foreign(*({"name": name, "type": "string"} for name in names))
    event = classes(source([schema])).Order
    assert list(event.model_fields) == [
        "class_",
        "id_",
        "field_model_config",
        "field_model_dump",
        "json_",
        "avro_name_",
        "match",
    ]
    assert [field["name"] for field in derive(event, "shop", envelope=False)["fields"]] == names
    assert event.model_validate(dict.fromkeys(names, "x")) == event(**dict.fromkeys(event.model_fields, "x"))


def test_a_name_that_is_none_of_avro_s_does_not_get_into_the_source() -> None:
    for schema in (foreign({"name": "x: str = print()", "type": "string"}), foreign() | {"name": "A:\n    pass"}):
        with pytest.raises(ConfigurationError, match="is no Avro name"):
            source([schema])


def test_properties_that_avro_does_not_know_are_passed_over() -> None:
    kinds = [
        {"type": "string", "avro.java.string": "String"},
        {"type": "double", "unit": "cm"},
        {"type": "string", "logicalType": "url"},
    ]
    text = source([foreign(*({"name": f"f{place}", "type": kind} for place, kind in enumerate(kinds)))])
    assert [line.strip() for line in text.splitlines() if line.startswith("    f")] == [
        "f0: str",
        "f1: float",
        "f2: str",
    ]


def test_a_schema_that_names_no_topic_needs_one_said() -> None:
    schema = foreign({"name": "number", "type": "string"})
    del schema["topic"]
    with pytest.raises(ConfigurationError, match=r"shop\.Order: the schema names no topic.*--topic"):
        source([schema])
    assert classes(source([schema], topic="shop.orders")).Order.__event__.topic == "shop.orders"


def test_types_of_two_schemas_that_differ_under_one_name_are_refused() -> None:
    line = {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "string"}]}
    other = line | {"fields": []}
    one, two = (foreign({"name": "line", "type": kind}) | {"name": name} for name, kind in (("A", line), ("B", other)))
    assert classes(source([one, one | {"name": "B"}])).B
    with pytest.raises(ConfigurationError, match=r"shop\.B: its type Line differs"):
        source([one, two])
    with pytest.raises(ConfigurationError, match="two schemas are called A"):
        source([one, one])


def test_a_name_that_python_keeps_is_that_of_the_schema_all_the_same() -> None:
    event = classes(source([foreign() | {"name": "None"}])).None_
    assert derive(event, "shop")["name"] == "None"


def test_a_view_reads_what_a_schema_with_32_bit_numbers_was_written_with() -> None:
    line = {"type": "record", "name": "Line", "namespace": "com.shop", "fields": [{"name": "count", "type": "int"}]}
    schema = foreign(
        {"name": "number", "type": "string"}, {"name": "size", "type": "int"}, {"name": "share", "type": ["null", "float"]},
        {"name": "lines", "type": {"type": "array", "items": line}}, {"name": "last", "type": "com.shop.Line"},
    )  # fmt: skip
    text = source([schema], view=True)
    assert "# int in the schema, read as long" in text
    made, theirs = contract(classes(text).Order, "shop"), writer(schema)
    fields = {"number": "A-1", "size": 7, "share": 0.5, "lines": [{"count": 1}, {"count": 2}], "last": {"count": 3}}
    out = BytesIO()
    fastavro.schemaless_writer(out, theirs.parsed, fields)
    value = b"\xc3\x01" + theirs.fingerprint + out.getvalue()
    read = made.read(decode(value, theirs, lenient(made.writer, theirs.missing)))
    assert read.model_dump() == fields
    with pytest.raises(ConfigurationError, match="it is read only"):
        made.encode({}, read)


def test_records_that_mention_each_other_are_written() -> None:
    edge = {"type": "record", "name": "Edge", "fields": [{"name": "to", "type": "Node"}]}
    node = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "edge", "type": ["null", edge]}],
    }
    module = classes(source([foreign({"name": "root", "type": node})]))
    read = module.Order.model_validate({"root": {"edge": {"to": {"edge": None}}}})
    assert read.root.edge.to.edge is None


def test_the_command_needs_a_schema() -> None:
    ended = run()
    assert ended.exit_code == ExitCode.USAGE
    assert "no schema given" in ended.stderr


def test_of_released_versions_the_last_one_counts(tmp_path: Path) -> None:
    for event, number in (("shop.Order", 1), ("shop.Order", 2), ("shop.Order", 10), ("shop.Offer", 1)):
        folder = tmp_path / event
        folder.mkdir(exist_ok=True)
        schema = foreign({"name": f"v{number}", "type": "string"}) | {"name": event.split(".")[1]}
        (folder / f"{number}.avsc").write_text(json.dumps(schema))
    ended = run(str(tmp_path))
    assert ended.exit_code == 0, ended.output
    module = classes(ended.stdout)
    assert list(module.Order.model_fields) == ["v10"]
    assert list(module.Offer.model_fields) == ["v1"]


NOT_FOUND, WRONG = ExitCode.NOT_FOUND, ExitCode.CONFIGURATION


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["schemas", "python", *arguments])


def test_the_command_writes_a_file_from_folders_and_needs_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run(str(ROOT / "schemas"), "--out", "theirs.py")
    assert ended.exit_code == 0, ended.output
    text = (tmp_path / "theirs.py").read_text()
    found = vars(classes(text)).keys()
    of_the_runtime = {event.avro_name() for event in RUNTIME_EVENTS}
    assert {path.stem.split(".")[1] for path in OURS} - of_the_runtime <= found
    assert not of_the_runtime & found, "every flow has these: two classes of one name cannot be"
    assert run(str(ROOT / "schemas"), "--out", "theirs.py").exit_code == 0, "what the command wrote it writes anew"
    (tmp_path / "theirs.py").write_text("mine = 1\n")
    ended = run(str(ROOT / "schemas"), "--out", "theirs.py")
    assert "theirs.py is there, and was not written by this command" in ended.stderr
    assert (tmp_path / "theirs.py").read_text() == "mine = 1\n"


@pytest.mark.parametrize(
    ("name", "text", "code", "said"),
    [
        ("gone.avsc", None, NOT_FOUND, "gone.avsc: no such file"),
        ("odd.avsc", "{", WRONG, "odd.avsc: not JSON"),
        ("odd.avsc", "[]", WRONG, "odd.avsc: not an Avro record schema"),
        ("odd.avsc", '{"type": "enum", "name": "E", "symbols": ["A"]}', WRONG, "odd.avsc: not an Avro record schema"),
        ("odd.avsc", '{"type": "record", "name": "R", "fields": []}', WRONG, "R: the schema names no topic"),
    ],
)
def test_the_command_says_what_is_wrong_with_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str | None, code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / name).write_text(text)
    ended = run(name)
    assert ended.exit_code == code, (ended.exit_code, ended.output)
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_the_command_says_that_records_of_another_flow_s_name_are_not_read(tmp_path: Path) -> None:
    file = tmp_path / "theirs.avsc"
    file.write_text(json.dumps(foreign() | {"namespace": "com.acme"}))
    assert "records written as com.acme.Order are not read as this class" in run(str(file)).stderr
