"""Released files that were touched are found; versions are shown, compared and retired by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from farandole.contracts import releases
from farandole.errors import ConfigurationError
from farandole.project import require_project
from tests.unit.deploying import Deploys, farandole


@pytest.fixture
def deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deploys:
    return Deploys(tmp_path, monkeypatch.chdir)


@pytest.mark.parametrize(
    ("file", "edit", "told"),
    [
        ("1.avsc", lambda raw: raw.replace(b'"default": 1', b'"default": 2'), "1.avsc: was edited after its release"),
        ("1.avsc", lambda raw: raw[:-9], "1.avsc: is not JSON"),
        ("1.json", lambda raw: raw.replace(b'"amount": 42', b'"amount": 41'), "1-1.bin: no longer decodes to what 1.json says"),
        ("1.json", lambda raw: b"[]", "1.json: is no JSON object"),
        ("1-1.bin", lambda raw: raw[:-1], "1-1.bin: no longer decodes"),
        ("1-2.bin", lambda raw: raw[:2] + bytes(8) + raw[10:], "1-2.bin: no longer decodes: its first bytes do not name"),
        ("1-2.bin", None, "1-2.bin: is gone"),
        ("1.json", None, "1.json: is gone"),
        ("1.avsc", lambda raw: b'{"type": "record"}', "1.avsc: is not an Avro schema: record; take it back"),
        ("1.avsc", lambda raw: b"[" * 100_000, "1.avsc: is not JSON"),
        ("1.json", lambda raw: b'{"schema": 5, "records": 7}', "1-2.bin: is none of the records of 1.json"),
    ],
)  # fmt: skip
def test_a_released_file_that_was_touched_is_found(
    file: str, edit: Callable[[bytes], bytes] | None, told: str, deploy: Deploys
) -> None:
    path = deploy.released() / "tests/golden/orders.Placed" / file
    raw = path.read_bytes()
    if edit is None:
        path.unlink()
    else:
        path.write_bytes(edit(raw))
        assert path.read_bytes() != raw
    for command in ("check", "release"):
        assert f"tests/golden/orders.Placed/{told}" in farandole("schemas", command, code=1)


def test_a_version_that_is_missing_between_others_is_found(deploy: Deploys) -> None:
    deploy.released()
    folder = deploy.released(("amount: int = 0", "amount: int = 0\n    note: str | None = None"))
    (folder / "tests/golden/orders.Placed/1.avsc").unlink()
    assert "orders.Placed/1.avsc: is gone" in farandole("schemas", "check", code=1)


def test_layout_and_line_ends_are_no_edit(deploy: Deploys) -> None:
    path = deploy.released() / "tests/golden/orders.Placed/1.avsc"
    path.write_text(json.dumps(json.loads(path.read_text())) + "\r\n")
    farandole("schemas", "check")


def test_a_type_is_shown_and_compared_with_its_last_release(deploy: Deploys) -> None:
    deploy.released()
    folder = deploy(("amount: int = 0", "amount: int = 0\n    note: str | None = None"))
    shown = farandole("schemas", "show", "Placed")
    assert "the class: topic orders.placed, stage placed, ingest" in shown
    assert "released: 1" in shown
    assert "note" not in farandole("schemas", "show", "orders.Placed", "--released")
    assert json.loads(farandole("schemas", "show", "Placed", "--version", "1", "--json")) == json.loads(
        (folder / "tests/golden/orders.Placed/1.avsc").read_text()
    )
    told = farandole("schemas", "diff", "Placed")
    assert "null | string = null" in told
    assert "nobody breaks" in told
    assert [one["field"] for one in json.loads(farandole("schemas", "diff", "Placed", "--json"))["changes"]] == ["note"]
    assert "no difference" in farandole("schemas", "diff", "Priced")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("show", "Nothing"), "no event type 'Nothing'; there is: orders.Billed"),
        (("show", "Placed", "--version", "7"), "orders.Placed: version 7 was not released; released: 1"),
        (("diff", "Placed", "7"), "orders.Placed: version 7 was not released"),
        (("diff", "Placed", "0"), "orders.Placed: version 0 was not released"),
        (("show", "Placed", "--version", "0"), "orders.Placed: version 0 was not released"),
        (("retire", "Nothing"), "orders.Nothing was not released; there is: orders.Billed"),
        (("retire", "Placed", "7"), "version 7 of orders.Placed was not released"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(command: tuple[str, ...], told: str, deploy: Deploys) -> None:
    deploy.released()
    assert told in farandole("schemas", *command, code=4)


@pytest.mark.parametrize("version", [(), ("1",)])
def test_the_version_that_runs_cannot_be_retired(version: tuple[str, ...], deploy: Deploys) -> None:
    folder = deploy.released()
    assert "its readers run" in farandole("schemas", "retire", "Placed", *version, code=2)
    assert not (folder / "tests/golden/orders.Placed/retired").exists()


def test_an_edited_number_of_retired_versions_is_named(deploy: Deploys) -> None:
    folder = deploy.released()
    (folder / "tests/golden/orders.Placed/retired").write_text("all\n")
    with pytest.raises(ConfigurationError, match=r"orders.Placed/retired: 'all'; expected the number of a version"):
        releases.histories(require_project(folder))


def test_a_folder_in_place_of_a_file_and_a_file_in_place_of_a_folder_are_named(deploy: Deploys) -> None:
    folder = deploy.released()
    schema = folder / "schemas/orders.Placed.avsc"
    schema.unlink()
    schema.mkdir()
    assert "schemas/orders.Placed.avsc: not JSON" in farandole("schemas", "check", code=1)
    assert "error: schemas/orders.Placed.avsc cannot be written: Is a directory" in farandole(
        "schemas", "write", code=1
    )
    schema.rmdir()
    farandole("schemas", "write")
    record = folder / "tests/golden/orders.Placed/1-1.bin"
    record.unlink()
    record.mkdir()
    assert "1-1.bin: cannot be read: Is a directory" in farandole("schemas", "check", code=1)
    shutil.rmtree(folder / "tests/golden")
    (folder / "tests/golden").touch()
    assert "error: tests/golden/orders.Placed cannot be written: Not a directory" in farandole(
        "schemas", "release", code=1
    )
