"""A project of one's own: the template written to a new folder, with a farandole its Makefile can install."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from farandole.errors import ConfigurationError, ExitCode, FarandoleError

#: Part of the template; a flow of the same name would mix its topics with theirs.
_TAKEN = {"farandole", "sort", "decide"}

_SUFFIX = ".template"
_NAMES = {"gitignore": ".gitignore"}
#: The parts of farandole that a project on a developer's machine needs.
_EXTRAS = "local,test"


def create(target: Path) -> list[Path]:
    """Write the template's project to `target`, whose last part is its name. Returns the files, relative to it.

    Raises FarandoleError for a name that cannot be used, a folder that is not empty, or a farandole of unknown origin.
    """
    flow = flow_name(target.name)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FarandoleError(f"{target} exists and is not empty; nothing was written", ExitCode.USAGE)
    requirement, origin = source_of_farandole()
    made = not target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        if origin:
            requirement = f"./vendor/{_vendor(origin, target / 'vendor')}[{_EXTRAS}]"
        values = {"name": target.name, "flow": flow, "requirement": requirement}
        _write(files("farandole") / "templates" / "flow", target, values)
        _write_schemas(target)
    except BaseException:
        if made:
            shutil.rmtree(target, ignore_errors=True)
        raise
    return sorted(
        path.relative_to(target) for path in target.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )


def flow_name(name: str) -> str:
    """The flow of a project: its name as a word that topics can start with.

    >>> flow_name("My-Flow")
    'my_flow'
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,30}", name):
        raise FarandoleError(
            f"{name!r} is no project name; expected at most 31 letters, digits, - and _, a letter first",
            ExitCode.USAGE,
        )
    flow = name.lower().replace("-", "_")
    if flow in _TAKEN:
        raise FarandoleError(
            f"{name!r} cannot be the project's name: topics would mix with those of {flow!r}", ExitCode.USAGE
        )
    return flow


def source_of_farandole() -> tuple[str, Path | None]:
    """What to install: a requirement of this very version, and where it came from a local wheel or checkout, that path.

    pip records the origin of what does not come from an index (direct_url.json, PEP 610).
    """
    distribution = metadata.distribution("farandole")
    requirement = f"farandole[{_EXTRAS}]=={distribution.version}"
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    if not origin:
        return requirement, None
    if commit := origin.get("vcs_info"):
        return f"farandole[{_EXTRAS}] @ {commit['vcs']}+{origin['url']}@{commit['commit_id']}", None
    if url.scheme != "file":
        return f"farandole[{_EXTRAS}] @ {origin['url']}", None
    path = Path(unquote(url.path))
    if not path.exists():
        raise ConfigurationError(f"this farandole was installed from {path}, which is gone: the new project needs it")
    return requirement, path


def _vendor(origin: Path, vendor: Path) -> str:
    """Put a wheel of this farandole into `vendor`; returns its file name."""
    vendor.mkdir()
    if origin.is_file():
        shutil.copy(origin, vendor)
        return origin.name
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--wheel-dir",
        str(vendor),
        str(origin),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        reason = (built.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise FarandoleError(f"no wheel could be built from {origin}: {reason}")
    return next(vendor.glob("farandole-*.whl")).name


def _write(source: Traversable, target: Path, values: dict[str, str]) -> None:
    for item in source.iterdir():
        if item.is_dir():
            (target / item.name).mkdir(exist_ok=True)
            _write(item, target / item.name, values)
        elif item.name.endswith(_SUFFIX):
            name = item.name.removesuffix(_SUFFIX)
            text = item.read_text(encoding="utf-8")
            for key, value in values.items():
                text = text.replace("{{" + key + "}}", value)
            (target / _NAMES.get(name, name)).write_text(text, encoding="utf-8")


def _write_schemas(target: Path) -> None:
    from farandole.contracts import files
    from farandole.project import require_project

    project = require_project(target)
    files.write(project, str(project.table["flow"]))
