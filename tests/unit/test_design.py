"""The documents against the tree: what they name exists, and what exists is named where it belongs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from farandole import kafka
from farandole.settings import Settings

ROOT = Path(__file__).parents[2]
DESIGN = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
CODE = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted((ROOT / "farandole").rglob("*.py"))
}


def section(title: str) -> str:
    return DESIGN.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_map_names_every_module_once_and_nothing_else() -> None:
    rows = [line for line in section("Where things are").splitlines() if line.startswith("|")]
    named = re.findall(r"`(farandole/[\w/]+\.py)`", "\n".join(rows))
    assert sorted(named) == sorted(CODE)


def test_the_folders_that_are_named_exist() -> None:
    for name in re.findall(r"`((?:farandole|projections|schemas|agents|tests|benchmarks|docs)/[\w/]*)`", DESIGN):
        assert (ROOT / name).exists(), name


#: What is written like a function and is none: files, topics, columns, what does not exist yet.
NO_FUNCTIONS = {"ctx.once", "jobs.classified", "jobs.dead_lettered", "jobs.failed", "projector_offset.gap"}


def _functions() -> list[str]:
    """`Class.method`, `module.function`, outside the chapter on Kafka, whose settings look alike."""
    text = DESIGN.replace(section("Kafka settings"), "")
    found = set(re.findall(r"`([A-Za-z]\w*\.[a-z_]\w*)`", text)) - NO_FUNCTIONS
    return sorted(name for name in found if not name.endswith((".sql", ".py", ".md", ".schemas", ".dead")))


@pytest.mark.parametrize("name", _functions())
def test_a_function_that_is_named_exists(name: str) -> None:
    owner, _, member = name.partition(".")
    classes = [text for text in CODE.values() if re.search(rf"^class {owner}\b", text, re.MULTILINE)]
    modules = [text for path, text in CODE.items() if Path(path).stem == owner]
    assert any(re.search(rf"\bdef {member}\b", text) for text in [*classes, *modules]), name


def _configurations(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], dict[str, Any]]:
    """What consumers and transactional producers are made with."""
    made: list[dict[str, Any]] = []

    def keep(config: dict[str, Any], **_: Any) -> None:
        made.append(config)

    monkeypatch.setattr(kafka, "Consumer", keep)
    monkeypatch.setattr(kafka, "Producer", keep)
    settings = Settings(kafka_bootstrap_servers="localhost:9092")
    kafka.consumer(settings, "group")
    kafka.producer(settings, "id")
    return made[0], made[1]


def _named(table: str) -> set[str]:
    rows = section("Kafka settings").split(f"| {table} ")[1].split("\n\n")[0]
    return set(
        re.findall(
            r"`([a-z]+(?:\.[a-z]+)+|partitioner)`", "\n".join(row.split("|")[1] for row in rows.splitlines()[2:])
        )
    )


@pytest.mark.parametrize(("table", "which"), [("consumer", 0), ("producer", 1)])
def test_every_setting_of_a_client_is_explained(table: str, which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    used = _configurations(monkeypatch)[which].keys() - {"bootstrap.servers", "group.id", "transactional.id"}
    assert _named(table) - {"group.instance.id"} == used


def test_every_setting_of_the_broker_that_is_explained_is_made() -> None:
    text = (ROOT / "farandole/stack/kafka.properties").read_text(encoding="utf-8")
    for name in _named("broker"):
        assert re.search(rf"^{re.escape(name)}=", text, re.MULTILINE), name


def test_every_cause_of_a_dead_letter_is_in_the_table() -> None:
    causes = {
        cause
        for text in CODE.values()
        for cause in re.findall(r"(?:Poison|DeadLettered)\(\s*\"(\w+)\"", text)
        if cause != "refused"
    } | {"too_large"}
    table = section("How an attempt ends")
    assert {cause for cause in causes if f"`{cause}`" not in table and f'"{cause}"' not in table} == set()


def test_the_contents_are_the_headings() -> None:
    headings = re.findall(r"^## (.*)$", DESIGN, re.MULTILINE)
    assert re.findall(r"^- \[(.*?)\]\(#", DESIGN, re.MULTILINE) == headings


DOCUMENTS = [
    *("CHANGELOG.md", "CONTRIBUTING.md", "DESIGN.md", "README.md"),
    *(
        "docs/contracts.md",
        "docs/costs.md",
        "docs/effects.md",
        "docs/glossary.md",
        "docs/limits.md",
        "docs/operations.md",
        "docs/queries.md",
    ),
]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_somewhere(name: str) -> None:
    document = ROOT / name
    for target in re.findall(r"\]\(([^)]+)\)", document.read_text(encoding="utf-8")):
        file, _, heading = target.partition("#")
        if "://" in target:
            continue
        there = document if not file else document.parent / file
        assert there.exists(), target
        assert not heading or heading in _anchors(there), target


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_speaks_of_no_machine(name: str) -> None:
    """No absolute path, and no line that is too long to read beside another."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w.:/<])/(?:home|root|work|tmp|Users)/\S*", text) == []
    prose = [line for line in text.splitlines() if not line.startswith(("|", "$", "…", " "))]
    assert [line for line in prose if len(line) > 125] == []


def test_every_dependency_says_why_it_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {re.split(r"[\[<>= ]", one)[0].lower() for one in wanted}
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Why these dependencies")[1]
    told = {
        name for row in table.splitlines() if row.startswith("|") for name in re.findall(r"[\w-]+", row.split("|")[1])
    }
    stubs = {name for name in names if name.startswith("types-")}
    assert names - stubs - {"farandole"} - told == set()


def test_every_command_of_the_makefile_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in ("CONTRIBUTING.md", "README.md"):
        for target in re.findall(r"`make ([a-z-]+)", (ROOT / name).read_text(encoding="utf-8")):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_changelog_begins_with_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE)[0] == version
    assert text.split(f"## {version}")[1].split("### ")[1].startswith("Schemas, topics, tables")


def test_the_tables_of_the_changelog_are_those_that_are_made() -> None:
    sql = (ROOT / "farandole/migrations/sql/0001_first.sql").read_text(encoding="utf-8")
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [name for name in re.findall(r"^CREATE TABLE (\w+)", sql, re.MULTILINE) if f"`{name}`" not in text] == []


def _anchors(document: Path) -> set[str]:
    """The headings as links name them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
