"""The project: the nearest folder whose pyproject.toml has [tool.farandole], and how its Python files are loaded."""

from __future__ import annotations

import importlib.util
import os
import sys
import tomllib
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from farandole.errors import ConfigurationError, ExitCode, FarandoleError


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with `schemas/`, `agents/` and `projections/`, and its [tool.farandole] table."""

    root: Path
    table: dict[str, Any]

    @property
    def agents(self) -> Path:
        return self.root / "agents"

    @property
    def schemas(self) -> Path:
        return self.root / "schemas"

    @property
    def projections(self) -> Path:
        return self.root / "projections"

    @property
    def data(self) -> Path:
        """Where the local stack keeps its files; safe to delete while the stack is down."""
        return self.root / ".farandole"

    def activate(self) -> Project:
        """Put the root first on sys.path, so that agents can write `from schemas.jobs import …`."""
        root = str(self.root)
        if sys.path[:1] != [root]:
            sys.path[:] = [root, *(entry for entry in sys.path if entry != root)]
        return self


def find_project(start: Path | None = None) -> Project | None:
    """The project around `start` (default: the working folder), or None when there is none."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{file}: not valid TOML: {error}") from error
        if "farandole" in tool:
            return Project(folder, tool["farandole"])
    return None


def require_project(start: Path | None = None) -> Project:
    """The project around `start`, active on sys.path; a clear error when there is none."""
    project = find_project(start)
    if project is None:
        raise ConfigurationError(
            f"no project here: expected a pyproject.toml with [tool.farandole] in {(start or Path.cwd()).resolve()} "
            "or a folder above it; `farandole init NAME` makes one"
        )
    return project.activate()


def load_file(path: Path) -> ModuleType:
    """The module in the Python file at `path`, run once, with its project first on sys.path."""
    path = path.resolve()
    if not path.is_file():
        if path.is_dir():
            raise FarandoleError(f"{path} is a folder; expected agent files, such as {path.name}/*.py", ExitCode.USAGE)
        raise FarandoleError(f"{path}: no such file", ExitCode.NOT_FOUND)
    project = find_project(path.parent)
    if project:
        project.activate()
    name = _module_name(path, project)
    loaded = sys.modules.get(name)
    if loaded and Path(loaded.__file__ or "").resolve() == path:
        return loaded
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pydantic look annotations up here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module_name(path: Path, project: Project | None) -> str:
    """`agents.classify` for a file of a project, as an import would name it: a class in it is then one class, whichever
    way it was come by. Another name where an import could not find it."""
    if project and path.is_relative_to(project.root):
        parts = path.relative_to(project.root).with_suffix("").parts
        if all(part.isidentifier() for part in parts):
            return ".".join(parts)
    # The same name in each process: what is pickled in one names its class by it.
    return f"farandole_loaded_{path.stem}_{zlib.crc32(os.fsencode(path)):x}"
