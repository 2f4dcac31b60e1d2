"""Where things lie: the folder all checkouts of a user share, and where jars come from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

MAVEN_CENTRAL = "https://repo.maven.apache.org/maven2"
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
    """The Maven repository to ask: MAVEN_REPOSITORY_URL, or Maven Central."""
    return (os.environ.get(MIRROR_VARIABLE) or MAVEN_CENTRAL).rstrip("/")
