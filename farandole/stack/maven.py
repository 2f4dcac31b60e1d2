"""Files from a Maven repository: named with their SHA-256 by a lock, fetched through jgo, in the cache whole or not at all.

A lock names what runs by its digest, so that it is what was tested, a first start need not walk 60 POM files, and a
file that was cut short or changed on the way is never run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from farandole.errors import ExitCode, FarandoleError
from farandole.stack import faults, places

if TYPE_CHECKING:
    from jgo.maven import Artifact, MavenContext

#: Connections to the repository at once; Maven Central slows down a client that opens many.
DOWNLOADS = 8


@dataclass(frozen=True, slots=True)
class Locked:
    """One line of a lock: group:artifact:version SHA-256, a classifier and a type behind the version where it has them."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""
    packaging: str = "jar"

    @classmethod
    def read(cls, line: str) -> Locked:
        named, sha256 = line.split()
        group, artifact, version, *kind = named.split(":")
        return cls(group, artifact, version, sha256, *kind)

    @property
    def path(self) -> Path:
        """Its place in a repository."""
        name = "-".join(filter(None, (self.artifact, self.version, self.classifier)))
        return Path(*self.group.split("."), self.artifact, self.version, f"{name}.{self.packaging}")

    def within(self, context: MavenContext) -> Artifact:
        """What jgo calls it."""
        component = context.project(self.group, self.artifact).at_version(self.version)
        return component.artifact(self.classifier, self.packaging)


def locked(lock: str) -> list[Locked]:
    """The lines of a lock beside this module, in their order."""
    return parse(files("farandole.stack").joinpath(lock).read_text(encoding="utf-8"))


def parse(lock: str) -> list[Locked]:
    """What the text of a lock names, in its order."""
    return [Locked.read(line) for line in lock.splitlines() if line and not line.startswith("#")]


def download(wanted: Sequence[Locked], cache: Path, repository: str, keep: Callable[[Locked, Path], None]) -> None:
    """Fetch files and hand each to `keep` once it is checked; what `keep` leaves is removed at the end.

    Raises FarandoleError (NO_NETWORK) that names the file and the repository.
    """
    with TemporaryDirectory(dir=cache, prefix="download-") as draft, ThreadPoolExecutor(DOWNLOADS) as pool:
        context = context_for(Path(draft), repository)
        try:
            for fetched in [pool.submit(_download, one, context, keep) for one in wanted]:
                fetched.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # a Ctrl-C waits for those under way, not for all
            raise


def _download(one: Locked, context: MavenContext, keep: Callable[[Locked, Path], None]) -> None:
    import requests  # the client jgo asks with: only its errors are wanted here

    repository = context.remote_repos["central"]
    try:
        draft = one.within(context).resolve()
    except (requests.RequestException, RuntimeError) as error:  # RuntimeError: jgo's word for any status but 200
        raise FarandoleError(
            f"cannot download {one.path.name} from {repository}: {_reason(error)}; the first start needs the network "
            f"once (behind a proxy set HTTPS_PROXY, for a mirror {places.MIRROR_VARIABLE})",
            ExitCode.NO_NETWORK,
        ) from error
    if (found := sha256(draft)) != one.sha256:
        raise FarandoleError(
            f"{one.path.name} from {repository} is not the file that was released: its SHA-256 is {found}, expected "
            f"{one.sha256}",
            ExitCode.NO_NETWORK,
        )
    keep(one, draft)


def _reason(error: BaseException) -> str:
    """The innermost cause, without the wrapping of three HTTP libraries."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return str(error).rpartition("] ")[2] or type(error).__name__


def context_for(folder: Path, repository: str) -> MavenContext:
    """jgo's resolver of one repository, with `folder` for what it fetches."""
    try:
        from jgo.maven import MavenContext, PythonResolver
    except ImportError:
        raise faults.missing_extra("jgo") from None
    return MavenContext(resolver=PythonResolver(), repo_cache=folder, remote_repos={"central": repository})


def sha256(file: Path) -> str:
    """The digest of a file, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
