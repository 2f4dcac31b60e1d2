"""The .avsc files follow their classes; what differs is named by file and field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from farandole.cli import app
from farandole.contracts import files, publishing
from farandole.errors import ConfigurationError
from farandole.flow import event_classes, ingest_event
from tests.unit.projects import EVENTS, project

FILES = [
    f"orders.{name}.avsc"
    for name in ("Billed", "JobDeadLettered", "JobDiscarded", "JobFailed", "JobRedriven", "Placed", "Priced")
]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_one_file_an_event_type_the_runtime_s_included(tmp_path: Path) -> None:
    found = project(tmp_path)
    assert sorted(path.name for path in files.write(found, "orders")) == FILES
    assert files.write(found, "orders") == []
    assert files.check(found, "orders") == []


def test_a_changed_field_is_named(tmp_path: Path) -> None:
    found = project(tmp_path)
    files.write(found, "orders")
    edit(tmp_path / "schemas" / "orders.Placed.avsc", '"default": 0\n    }\n  ]', '"default": 1\n    }\n  ]')
    (drift,) = files.check(found, "orders")
    assert (drift.file.name, drift.field) == ("orders.Placed.avsc", "amount")
    assert drift.what == "default is 0 in the class, 1 in the file"


def test_a_missing_and_a_superfluous_field_are_named(tmp_path: Path) -> None:
    found = project(tmp_path)
    files.write(found, "orders")
    edit(tmp_path / "schemas" / "orders.Priced.avsc", '"name": "total"', '"name": "sum"')
    found_drift = {(one.field, one.what) for one in files.check(found, "orders")}
    assert found_drift == {("total", "in the class, not in the file"), ("sum", "in the file, not in the class")}


def test_a_missing_a_broken_and_a_stale_file_are_named(tmp_path: Path) -> None:
    found = project(tmp_path)
    files.write(found, "orders")
    (tmp_path / "schemas" / "orders.Placed.avsc").unlink()
    (tmp_path / "schemas" / "orders.Priced.avsc").write_text("{")
    (tmp_path / "schemas" / "orders.Old.avsc").write_text('{"name": "Old", "topic": "orders.old", "fields": []}')
    assert {(one.file.name, one.what) for one in files.check(found, "orders")} == {
        ("orders.Placed.avsc", "not written yet"),
        ("orders.Priced.avsc", "not JSON"),
        ("orders.Old.avsc", "its event class is gone"),
    }


@pytest.mark.parametrize("text", ['{"fields": 5}', '{"fields": [5]}', '{"fields": [{"name": ["a"]}]}'])
def test_a_file_that_is_json_and_no_schema_is_named(text: str, tmp_path: Path) -> None:
    found = project(tmp_path)
    files.write(found, "orders")
    (tmp_path / "schemas" / "orders.Placed.avsc").write_text(text)
    assert [(one.file.name, one.what) for one in files.check(found, "orders")] == [
        ("orders.Placed.avsc", "not an Avro record schema")
    ]


def test_writing_removes_derived_files_only(tmp_path: Path) -> None:
    found = project(tmp_path)
    stale, foreign = tmp_path / "schemas" / "orders.Old.avsc", tmp_path / "schemas" / "partner.Thing.avsc"
    stale.write_text('{"name": "Old", "topic": "orders.old", "fields": []}')
    foreign.write_text('{"type": "record", "name": "Thing", "fields": []}')
    files.write(found, "orders")
    assert not stale.exists()
    assert foreign.exists()
    assert files.check(found, "orders") == []


def test_line_ends_and_layout_are_no_drift(tmp_path: Path) -> None:
    found = project(tmp_path)
    files.write(found, "orders")
    path = tmp_path / "schemas" / "orders.Placed.avsc"
    path.write_text(json.dumps(json.loads(path.read_text())) + "\r\n")
    assert files.check(found, "orders") == []


def test_a_changed_class_is_drift_and_the_command_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(project(tmp_path), "orders")
    path = tmp_path / "schemas" / "orders.Billed.avsc"
    edit(path, '"terminal": "done"', '"terminal": "failed"')
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["schemas", "check"])
    assert ended.exit_code == 1
    assert "schemas/orders.Billed.avsc" in ended.output
    assert "terminal" in ended.output
    assert "farandole schemas write" in ended.output
    assert CliRunner().invoke(app, ["schemas", "write"]).exit_code == 0
    assert CliRunner().invoke(app, ["schemas", "check"]).exit_code == 0


def test_an_ingest_type_may_be_written_without_its_envelope(tmp_path: Path) -> None:
    found = publishing.writers(event_classes(project(tmp_path)), "orders")
    assert [(writer.name, bool(writer.missing)) for writer in found] == [
        ("orders.Placed", False), ("orders.Placed", True), ("orders.Priced", False), ("orders.Billed", False),
    ]  # fmt: skip
    assert len({writer.fingerprint for writer in found}) == len(found)


def test_two_classes_of_one_name_are_refused(tmp_path: Path) -> None:
    found = project(tmp_path)
    (tmp_path / "schemas" / "more.py").write_text(EVENTS)
    with pytest.raises(ConfigurationError, match="a second event class is called"):
        event_classes(found)


def test_the_ingest_type_is_found_or_named(tmp_path: Path) -> None:
    found = project(tmp_path)
    assert ingest_event(found).__name__ == "Placed"
    assert ingest_event(found, "Billed").__name__ == "Billed"
    with pytest.raises(ConfigurationError, match="no event class 'Nothing'"):
        ingest_event(found, "Nothing")


def test_projects_do_not_see_each_other_s_classes(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    one, two = project(first), project(second, events=EVENTS.replace("Placed", "Ordered"))
    assert [event_classes(found)[0].__name__ for found in (one, two, one)] == ["Placed", "Ordered", "Placed"]
