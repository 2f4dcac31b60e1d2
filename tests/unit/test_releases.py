"""Released versions: written once, found when they are touched, and held against every later class."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from farandole.contracts import codec, files, framing
from farandole.contracts.evolution import releases
from farandole.flow import event_classes
from farandole.project import require_project
from tests.unit.deploying import Deploys, farandole
from tests.unit.projects import EVENTS

ROOT = Path(__file__).parents[2]
MOODS = """
from enum import StrEnum
class Mood(StrEnum):
    CALM = "calm"
    CROSS = "cross"
"""
DEFAULT_MOOD = (
    MOODS
    + """
    __unknown__ = "calm"
"""
)


@pytest.fixture
def deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deploys:
    return Deploys(tmp_path, monkeypatch.chdir)


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in (folder / "tests").rglob("*") if path.is_file()
    }


def test_a_first_release_is_kept_as_schema_bytes_and_values(deploy: Deploys) -> None:
    folder = deploy()
    assert "no version was released yet" in farandole("schemas", "check")
    assert "released orders.Placed version 1" in farandole("schemas", "release")
    golden = folder / "tests/golden/orders.Placed"
    assert sorted(path.name for path in golden.iterdir()) == ["1-1.bin", "1-2.bin", "1.avsc", "1.json"]
    written = codec.writer(json.loads((golden / "1.avsc").read_text()))
    full, bare = (codec.decode((golden / f"1-{at}.bin").read_bytes(), written) for at in (1, 2))
    assert [full, bare] == json.loads((golden / "1.json").read_text())["records"]
    assert (full["tenant"] is None, bare["tenant"] is None) == (False, True), (
        "an optional field is once there, once not"
    )
    assert (golden / "1-1.bin").read_bytes().startswith(framing.single_object(written.fingerprint))
    assert "and fit every version that was released" in farandole("schemas", "check")


def test_releasing_again_changes_nothing_and_the_bytes_are_the_same_everywhere(deploy: Deploys) -> None:
    folder = deploy()
    farandole("schemas", "release")
    first = everything(folder)
    assert "nothing has changed since the last release" in farandole("schemas", "release")
    assert everything(folder) == first
    shutil.rmtree(folder / "tests")
    farandole("schemas", "release")
    assert everything(folder) == first


def test_of_two_releases_at_once_one_is_told_and_nobody_ever_sees_half_a_schema(
    deploy: Deploys, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = deploy() / "tests/golden/orders.Placed"
    schema = next(iter(files.derived(require_project(deploy.folders[-1]), "orders").values()))
    seen: list[list[str]] = []
    replace = Path.replace

    def slowly(written: Path, place: Path) -> Path:
        seen.append(sorted(path.name for path in folder.glob("*.avsc")))
        return replace(written, place)

    monkeypatch.setattr(Path, "replace", slowly)
    releases._write(folder, 1, schema)
    assert seen == [[]], "the version exists at once, and whole"
    with pytest.raises(FileExistsError):
        releases._write(folder, 1, schema)
    assert [path.name for path in folder.glob("*.avsc*")] == ["1.avsc"]


def test_an_optional_field_is_a_next_version_and_the_first_stays_as_it_was(deploy: Deploys) -> None:
    first = everything(deploy.released())
    folder = deploy(("amount: int = 0", "amount: int = 0\n    note: str | None = None"))
    assert "not released yet: orders.Placed" in farandole("schemas", "check")
    assert farandole("schemas", "release").strip() == "released orders.Placed version 2"
    assert first.items() <= everything(folder).items()


def test_words_for_people_are_no_new_version(deploy: Deploys) -> None:
    deploy.released()
    deploy(("An order came in.", "An order arrived."))
    assert "nothing has changed" in farandole("schemas", "release")


BROKEN = {
    "a field without a default": (
        [("amount: int = 0", "amount: int = 0\n    note: str")], "field 'note': is new and has no default",
    ),
    "a field that had no default is gone": ([("    number: str\n    amount", "    amount")], "field 'number': is gone"),
    "another type": ([("amount: int = 0", 'amount: str = ""')], "field 'amount': was long, is string"),
    "null added": ([("total: int", "total: int | None = None")], "field 'total': was long, may be null now"),
    "another topic": ([('topic=".priced"', 'topic=".costed"')], "topic was 'orders.priced', is 'orders.costed'"),
    "a class by another name": ([("class Priced", "class Costed")], "orders.Priced: its event class is gone"),
    "a time in place of a number": (
        [("total: int", "total: AwareDatetime"), ("from farandole", "from pydantic import AwareDatetime\nfrom farandole")],
        "was long, is timestamp-micros",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_class_that_breaks_somebody_fails_the_check_and_is_not_released(case: str, deploy: Deploys) -> None:
    first = everything(deploy.released())
    changes, told = BROKEN[case]
    folder = deploy(*changes)
    for command in ("check", "release"):
        shown = farandole("schemas", command, code=1)
        assert told in shown
        assert "version 1" in shown
        assert "instead: " in shown
    assert everything(folder) == first
    rows = json.loads(farandole("schemas", "check", "--json", code=1))
    assert any(row.get("breaks") for row in rows)


def test_a_symbol_needs_a_default_symbol_first_and_readers_that_know_it(deploy: Deploys) -> None:
    field = ("number: str\n    amount", "number: str\n    mood: Mood\n    amount")
    sad = ('    CROSS = "cross"', '    CROSS = "cross"\n    SAD = "sad"')
    deploy.released(field, events=MOODS + EVENTS)
    deploy(field, sad, events=MOODS + EVENTS)
    assert "give the enum a default symbol first" in farandole("schemas", "check", code=1)
    deploy.released(field, events=DEFAULT_MOOD + EVENTS)
    deploy(field, sad, events=DEFAULT_MOOD + EVENTS)
    assert "readers at version 1 cannot read" in farandole("schemas", "check", code=1)
    farandole("schemas", "retire", "Placed", "1")
    farandole("schemas", "check")
    assert "released orders.Placed version 3" in farandole("schemas", "release")


def test_a_renamed_class_with_an_alias_breaks_nobody(deploy: Deploys) -> None:
    deploy.released()
    deploy(("class Priced(Event,", 'class Costed(Event, aliases=("Priced",),'))
    farandole("schemas", "check")
    assert "its last release was orders.Priced version 1" in farandole("schemas", "diff", "Costed")
    assert "released orders.Costed version 1" in farandole("schemas", "release")


def test_a_name_that_comes_back_with_another_type_breaks_the_version_that_had_it(deploy: Deploys) -> None:
    deploy.released()
    deploy.released(("    amount: int = 0\n", ""))
    deploy(("amount: int = 0", 'amount: str = ""'))
    shown = farandole("schemas", "check", code=1)
    assert "readers at version 1 cannot read" in shown
    assert "version 2" not in shown


def test_a_removed_type_is_gone_when_it_is_retired_and_its_records_stay(deploy: Deploys) -> None:
    deploy.released()
    folder = deploy((EVENTS[EVENTS.index("class Billed") :], ""))
    assert "farandole schemas retire" in farandole("schemas", "check", code=1)
    farandole("schemas", "retire", "orders.Billed")
    farandole("schemas", "check")
    (folder / "tests/golden/orders.Billed/1-1.bin").write_bytes(b"x")
    assert "orders.Billed/1-1.bin: no longer decodes" in farandole("schemas", "check", code=1)


def test_every_record_that_this_project_released_is_read_by_its_class_of_today() -> None:
    found = require_project(ROOT)
    contracts = [codec.contract(event, "jobs") for event in event_classes(found)]
    names = {name: made for made in contracts for name in (made.writer.name, *made.writer.aliases)}
    assert releases.damage(found) == []
    for name, history in releases.histories(found).items():
        for number, schema in history.versions.items():
            for path in sorted((ROOT / releases.FOLDER / name).glob(f"{number}-*.bin")):
                fields = codec.decode(
                    path.read_bytes(), codec.writer(schema), names[name].writer if name in names else None
                )
                if name in names:
                    names[name].read(fields)


KINDS = """
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

class Card(Part):
    kind: Literal["card"] = "card"
    number: str

class Transfer(Part):
    kind: Literal["transfer"] = "transfer"
    at: AwareDatetime

class Node(Part):
    children: list["Node"] = []
    left: "Node | None" = None
"""
FIELDS = """number: str
    payment: Card | Transfer
    many: list[Card | Transfer | None]
    tree: Node
    price: Annotated[Decimal, Field(max_digits=9, decimal_places=2)]
    day: date
    clock: time
    span: timedelta
    raw: bytes
    ref: UUID
    share: float
    sizes: dict[str, int]
    amount"""


def test_records_of_every_kind_of_field_are_kept_and_decode(deploy: Deploys) -> None:
    folder = deploy.released(("number: str\n    amount", FIELDS), events=KINDS + EVENTS)
    farandole("schemas", "check")
    first, second, third = json.loads((folder / "tests/golden/orders.Placed/1.json").read_text())["records"]
    assert [each["payment"]["kind"] for each in (first, second, third)] == ["card", "transfer", "card"]
    assert first["raw"] == "\0ÿ\0"
    assert (first["tree"]["left"], second["tree"]["children"]) == (None, [])
