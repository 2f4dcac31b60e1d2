"""A project that is deployed again and again: other classes, what was released before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import typer
from typer.testing import CliRunner

from farandole.cli import app
from farandole.cli.schemas import schemas
from farandole.contracts import files
from tests.unit.projects import EVENTS, project

#: `farandole` with `schemas` alone: to build all the other commands takes longer than to run one.
COMMANDS = typer.Typer(cls=app.info.cls)
COMMANDS.add_typer(schemas, name="schemas")


def farandole(*arguments: str, code: int = 0) -> str:
    ended = CliRunner().invoke(COMMANDS, arguments)
    assert ended.exit_code == code, ended.output
    return ended.output


class Deploys:
    """Makes the next state of a project in a folder of its own, with what was released before, and goes there."""

    def __init__(self, root: Path, go: Callable[[Path], None]) -> None:
        self.root, self.go = root, go
        self.folders: list[Path] = []

    def __call__(self, *changes: tuple[str, str], events: str = EVENTS) -> Path:
        folder = self.root / str(len(self.folders))
        folder.mkdir()
        for old, new in changes:
            assert old in events
            events = events.replace(old, new)
        files.write(project(folder, events=events), "orders")
        if self.folders and (self.folders[-1] / "tests").exists():
            shutil.copytree(self.folders[-1] / "tests", folder / "tests")
        self.folders.append(folder)
        self.go(folder)
        return folder

    def released(self, *changes: tuple[str, str], events: str = EVENTS) -> Path:
        folder = self(*changes, events=events)
        farandole("schemas", "release")
        return folder
