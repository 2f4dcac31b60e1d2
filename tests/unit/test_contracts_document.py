"""docs/contracts.md, typed in: its files are written, its commands show what they show, its reader reads our records."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from farandole import ids
from farandole.cli import app
from farandole.contracts.codec import contract
from farandole.envelope import Emitter, begin
from tests.acceptance.readme import Block, blocks_of, normal, pattern, typed

DOCUMENT = "docs/contracts.md"


def run(command: str, folder: Path) -> str:
    """What a terminal shows, both streams. farandole's commands run in this process: ten of them start one after another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "110")
        patch.setattr(sys, "dont_write_bytecode", True)  # a file changed within a second would be taken for the old one
        ours = re.fullmatch(r'farandole (.*?)(?: > (\S+))?(; echo "exit code \$\?")?', command)
        if not ours:
            return subprocess.run(
                ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True
            ).stdout
        for name in [name for name in sys.modules if name.split(".")[0] in ("schemas", "agents")]:
            patch.delitem(sys.modules, name)  # a new process reads the files as they are now
        ended = CliRunner().invoke(app, shlex.split(ours[1]))
        if ours[2]:
            (folder / ours[2]).write_text(ended.stdout, encoding="utf-8")
        assert ours[3] or ended.exit_code == 0, f"$ {command}\n{ended.output}"
        return (ended.stderr if ours[2] else ended.output) + f"exit code {int(ended.exit_code)}" * bool(ours[3])


def write(block: Block, folder: Path) -> None:
    """The first line names the file."""
    name = re.match(r"# (\S+\.py)\n", block.text)
    assert name, block.at
    path = folder / name[1]
    path.parent.mkdir(exist_ok=True)
    path.write_text(block.text, encoding="utf-8")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which everything of the document was done, in its order."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "pyproject.toml").write_text('[tool.farandole]\nflow = "shop"\n')
    for block in blocks_of(DOCUMENT):
        if block.language == "python":
            write(block, folder)
        for step in typed(block) if block.language == "console" else ():
            shown = normal(run(step.command, folder)) + "\n"
            fits = re.fullmatch(pattern(step.output) if step.output else r"\n?", shown)
            assert fits, f"{step.at} $ {step.command}\nshows:\n{step.output}\nbut says:\n{shown}"
    return folder


def test_the_document_does_what_it_says(shop: Path) -> None:
    kinds = {block.language for block in blocks_of(DOCUMENT)}
    assert kinds == {"python", "console", "java"}
    assert (shop / "ordered.py").exists()


@pytest.fixture
def importing(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(shop))
    for name in [name for name in sys.modules if name.split(".")[0] == "schemas"]:
        monkeypatch.delitem(sys.modules, name)
    yield
    sys.modules.pop("read_events", None)


@pytest.mark.usefixtures("importing")
@pytest.mark.parametrize("registered", [False, True])
def test_the_reader_of_the_document_reads_both_forms(registered: bool) -> None:
    shop: Any = importlib.import_module("schemas.shop")
    reader: Any = importlib.import_module("read_events")
    event = shop.Ordered(number="A-1", customer="Ann", total=Decimal("12.50"), channel=shop.Channel.WEB)
    made = contract(shop.Ordered, "shop")
    known = reader.store([(made.writer.fingerprint.hex().encode(), json.dumps(made.writer.schema).encode())])
    if registered:
        made = made.registered(7)
    value = made.encode(begin(ids.new_trace_id(), Emitter("client"), made.writer.name), event)
    found = reader.read(value, list(made.headers), known)
    assert (found["number"], found["total"], found["channel"]) == ("A-1", Decimal("12.50"), "web")
