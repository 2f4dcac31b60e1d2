"""The account Postgres runs under: the user's own, but never root, which Postgres refuses.

As root the account `nobody` is lent: no account is created and no permission of a folder that is not ours is widened.
Where `nobody` cannot reach the checkout or the binaries (/root, a temporary folder), their place is below /var/lib.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LENT = "nobody"
#: Root's own place for what `nobody` must reach and the checkout hides.
SHELTER = Path("/var/lib/farandole")


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the processes run as; None: as the user who asks."""

    uid: int | None = None
    gid: int | None = None

    @property
    def popen(self) -> dict[str, Any]:
        """Arguments of subprocess.Popen."""
        return {} if self.uid is None else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def give(self, folder: Path) -> None:
        """Make the account the owner of a folder."""
        if self.uid is not None:
            os.chown(folder, self.uid, self.gid if self.gid is not None else -1)

    def reaches(self, path: Path) -> bool:
        """Whether every folder above `path` lets the account through."""
        return self.uid is None or all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)


def choose() -> Account:
    """The account for Postgres under the present user."""
    if os.geteuid() != 0:
        return Account()
    entry = pwd.getpwnam(LENT)
    return Account(entry.pw_uid, entry.pw_gid)


def shelter(name: str) -> Path:
    """A folder of this name that every account reaches."""
    SHELTER.mkdir(mode=0o755, parents=True, exist_ok=True)
    return SHELTER / name


def reachable_copy(package: Path, libraries: Path, version: str, account: Account) -> Path:
    """The Postgres binaries where the account can run them: in place, or copied once a version."""
    if account.reaches(package / "bin" / "postgres"):
        return package
    target = shelter(f"postgres-{version}")
    if not target.exists():
        draft = target.with_name(f"{target.name}.{os.getpid()}")
        # the binaries find their libraries by a path relative to site-packages: keep its shape
        shutil.copytree(package, draft / package.parent.name / package.name, symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        try:
            draft.rename(target)
        except OSError:  # another `up` was faster: its copy is as good
            shutil.rmtree(draft, ignore_errors=True)
    return target / package.parent.name / package.name
