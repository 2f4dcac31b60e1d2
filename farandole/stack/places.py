"""Where things lie: the folder all checkouts of a user share, and where jars come from."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

#: Read here and nowhere else, by the name mirrors are usually given; the local stack must start where no project is.
MIRROR_VARIABLE = "MAVEN_REPOSITORY_URL"


def cache_folder() -> Path:
    """Jars and what is derived from them, shared between checkouts: ~/.cache/farandole, or as the system says."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "farandole"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "farandole"
    return Path.home() / ".cache" / "farandole"


def repository() -> str:
    """The Maven repository to ask: MAVEN_REPOSITORY_URL, or the one that jgo asks by default."""
    if mirror := os.environ.get(MIRROR_VARIABLE):
        return mirror.rstrip("/")
    from jgo.constants import MAVEN_CENTRAL_URL  # slow to import, and only here when jars are to be fetched

    return str(MAVEN_CENTRAL_URL).rstrip("/")


def empty(folder: Path, keep: str) -> None:
    """Remove everything in `folder` but the entry called `keep`; what a link points to stays."""
    for entry in folder.iterdir():
        if entry.name == keep:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
