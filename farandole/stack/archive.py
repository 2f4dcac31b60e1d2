"""The Schema Registry's program: the archive of registry.lock, unpacked in a cache that all checkouts share.

Another release: write its version and the digest that `sha256sum` says of its archive into the lock.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from farandole.errors import ExitCode, FarandoleError
from farandole.stack import maven
from farandole.stack.maven import Locked
from farandole.stack.state import exclusive

LOCK = "registry.lock"
#: What is run, below the folder of the archive.
PROGRAM = "quarkus-run.jar"
#: Python 3.11.4 and newer refuse entries that would leave the folder; before, the digest alone vouches for them.
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def locked() -> Locked:
    """The archive of registry.lock."""
    (only,) = maven.locked(LOCK)
    return only


def fetch(cache: Path, repository: str, say: Callable[[str], None]) -> Path:
    """The program's jar, downloaded and unpacked where it is not in `cache` yet; of several at once one does it."""
    archive = locked()
    target = cache / f"registry-{archive.version}-{archive.sha256[:12]}"

    def keep(_archive: Locked, draft: Path) -> None:
        _unpack(draft, cache, target)

    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with exclusive(cache / "registry.lock"):
            if not target.exists():
                say(f"downloading the Schema Registry Apicurio {archive.version} (151 MB, once)")
                maven.download([archive], cache, repository, keep)
    return target / PROGRAM


def _unpack(archive: Path, cache: Path, target: Path) -> None:
    """Unpack beside the place and move there when it is complete: whoever is killed meanwhile leaves no half of it."""
    with TemporaryDirectory(dir=cache, prefix="unpacking-") as folder:
        draft = Path(folder) / target.name
        with tarfile.open(archive, "r:gz") as content:
            content.extractall(draft, **SAFELY)
        if not (draft / PROGRAM).is_file():
            raise FarandoleError(f"{archive.name} holds no {PROGRAM}", ExitCode.STACK_FAILED)
        draft.rename(target)
