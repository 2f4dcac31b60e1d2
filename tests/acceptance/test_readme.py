"""README.md and docs/operations.md, typed in: every block is run in its order, and shows what comes out."""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from pydantic import SecretStr

from farandole.errors import ExitCode
from farandole.settings import Settings, variables
from farandole.stack.status import Endpoints
from tests.acceptance.readme import README, ROOT, Reader, blocks, normal, pattern, typed

#: What a reader has after `git clone`, as far as the commands need it.
PROJECT = ("pyproject.toml", "Makefile", "schemas", "agents", "projections", "examples")


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
    assert {block.language for block in blocks()} == {"mermaid", "console", "python", "sql", "text"}


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
