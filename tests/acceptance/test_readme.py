"""README.md and docs/operations.md, typed in: every block is run in its order, and shows what comes out."""

from __future__ import annotations

import ast
import inspect
import logging
import re
import secrets
import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from farandole.agent import Agent
from farandole.context import BlockingContext, Context
from farandole.envelope import Envelope
from farandole.errors import ExitCode
from farandole.outcome import DeadLettered
from farandole.settings import Settings, variables
from farandole.stack.status import Endpoints
from farandole.standing import AgentStanding, Gap, Lag, ProjectorStanding, Standing, Wait, Worker
from tests.acceptance.readme import README, ROOT, Reader, blocks, normal, pattern, typed

#: What a reader has after `git clone`, as far as the commands need it.
PROJECT = ("pyproject.toml", "Makefile", "schemas", "agents", "projections", "examples", "tests/golden")


@pytest.fixture(scope="module")
def reader(farandole_stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    home = tmp_path_factory.mktemp("farandole")
    for name in PROJECT:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, home / name)
    settings = Settings(
        kafka_bootstrap_servers=farandole_stack.kafka_bootstrap_servers,
        database_url=SecretStr(farandole_stack.database_url),
        namespace=f"readme_{secrets.token_hex(4)}",
    )
    with ExitStack() as stack:
        yield Reader(home, settings, stack)


@pytest.mark.timeout(900)
def test_the_documents_do_what_they_say(reader: Reader) -> None:
    rest = blocks()
    while rest:
        block = rest.pop(0)
        if block.language == "sql":
            assert rest[0].language == "text", f"{block.at}: the answer of a query stands below it"
            reader.asks(block, rest.pop(0))
        else:
            reader.does(block)


def test_every_block_is_of_a_kind_that_is_run() -> None:
    assert {block.language for block in blocks()} == {"mermaid", "console", "python", "markdown", "sql", "text"}


def test_the_picture_shows_every_agent_and_every_topic_of_the_flow() -> None:
    (picture,) = [block.text for block in blocks() if block.language == "mermaid"]
    for path in (ROOT / "agents").glob("*.py"):
        read, emitted = re.findall(r"jobs\.[a-z]+", path.read_text(encoding="utf-8").splitlines()[0])[:2]
        assert f"[/{read}/]" in picture
        assert f"{read.split('.')[1]} --> {path.stem}([{path.stem}]) --> {emitted.split('.')[1]}" in picture


def test_the_table_of_settings_is_that_of_the_settings() -> None:
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (.*?) \|", README, re.MULTILINE))
    assert list(rows) == variables()
    for name, shown in rows.items():
        found = Settings.model_fields.get(name.removeprefix("FARANDOLE_").lower())
        if found and shown.startswith("`"):
            default = str(found.default).lower() if isinstance(found.default, bool) else str(found.default)
            assert shown == f"`{default}`", name


def test_the_table_of_exit_codes_is_that_of_the_errors() -> None:
    rows = re.findall(r"^\| (\d+) \| `([a-z_]+)` \|", README, re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [(code.value, code.name.lower()) for code in ExitCode]


def test_the_table_of_arguments_is_that_of_the_agent() -> None:
    table = README.split("**The agent.**")[1].split("\n\n")[1]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.MULTILINE))
    declared = {name: one for name, one in inspect.signature(Agent).parameters.items() if one.kind is one.KEYWORD_ONLY}
    assert rows.keys() == declared.keys()
    for name, shown in rows.items():
        if shown.startswith("`"):
            assert ast.literal_eval(shown.strip("`")) == declared[name].default, name


def test_the_table_of_the_context_is_that_of_the_context() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", README.split("**The handler.**")[1].split("\n\n")[1], re.MULTILINE)
    for kind in (Context, BlockingContext):
        handed: Any = kind(Envelope({}), 1, None, logging.getLogger())
        assert set(rows) == {name for name in dir(handed) if not name.startswith("_")}


def test_every_cause_of_a_dead_letter_is_explained() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", _operations("Dead letters"), re.MULTILINE)
    causes = {cause.strip("` ") for row in rows for cause in row.split(",")}
    told = re.sub(r"\s+", " ", DeadLettered.__doc__ or "").split("word: ")[1].split(";")[0]
    assert causes == set(told.split(", "))


def test_every_field_of_the_standing_is_explained() -> None:
    place, seen = ("jobs.submitted", 0), datetime.now(UTC)
    lag = Lag(1, 1.0, {place[0]: {0: 1}})
    worker, gap = Worker(0, "here", 1, seen, 1.0, True, "running", None, {}), Gap(*place, "gone")
    agent = AgentStanding("a", True, place[0], lag, lag, 1, [worker], [Wait("retry", 1, 0, 0, seen)], {}, [gap])
    told = set(re.findall(r"`(\w+)(?:\[\])?`", _operations("How it stands")))
    assert _names(Standing([agent], ProjectorStanding(lag, 1, [gap])).as_dict()) - told == set()


def _operations(title: str) -> str:
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def _names(value: Any) -> set[str]:
    """All keys, however deep."""
    if isinstance(value, list):
        return {name for one in value for name in _names(one)}
    return set(value).union(*map(_names, value.values())) if isinstance(value, dict) else set()


def test_every_word_of_a_command_is_quoted_right() -> None:
    for block in blocks():
        for step in typed(block) if block.language == "console" else ():
            assert shlex.split(step.command)


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        ("3 submitted\n", "3   submitted  \n", True),
        ("3 submitted\n", "4 submitted\n", False),
        ("… submitted\n", "4 submitted\n", True),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("a\n…\n", "b\n", False),
    ],
)
def test_an_ellipsis_stands_for_anything_and_nothing_else_does(shown: str, output: str, same: bool) -> None:
    assert bool(re.fullmatch(pattern(shown), normal(output) + "\n")) is same
