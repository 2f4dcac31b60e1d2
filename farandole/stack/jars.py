"""Kafka's jars: exactly those of kafka.lock, fetched through jgo into a cache that all checkouts share.

The lock names every jar and its SHA-256, so that what runs is what was tested, a first start need not walk 60 POM
files, and a jar that was cut short or changed on the way is never run. `python -m farandole.stack.jars` writes it anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from farandole.errors import ExitCode, FarandoleError
from farandole.stack import faults, places
from farandole.stack.state import exclusive

if TYPE_CHECKING:
    from jgo.maven import MavenContext

KAFKA = "4.2.2"
#: Kafka's own pom leaves the bridge from slf4j to log4j to whoever runs it. It is added without what it depends on:
#: resolved together with Kafka, its parent pom would bring kafka-clients down to 3.9.1.
BRIDGE = "org.apache.logging.log4j:log4j-slf4j-impl"
LOCK = "kafka.lock"
#: Connections to the repository at once; Maven Central slows down a client that opens many.
DOWNLOADS = 8


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def path(self) -> Path:
        """Its place in a repository."""
        return Path(*self.group.split("."), self.artifact, self.version, f"{self.artifact}-{self.version}.jar")


def locked() -> list[Jar]:
    """The jars of kafka.lock, in the order of the classpath."""
    return parse(files("farandole.stack").joinpath(LOCK).read_text(encoding="utf-8"))


def parse(lock: str) -> list[Jar]:
    """The jars that the text of a lock names, in its order."""
    lines = lock.splitlines()
    return [Jar(*line.replace(" ", ":").split(":")) for line in lines if line and not line.startswith("#")]


def fetch(cache: Path, repository: str, say: Callable[[str], None]) -> list[Path]:
    """Kafka's classpath, as `fetch_all` says."""
    return fetch_all(locked(), f"Kafka {KAFKA}", cache, repository, say)


def fetch_all(jars: list[Jar], what: str, cache: Path, repository: str, say: Callable[[str], None]) -> list[Path]:
    """The files of `jars`, downloaded where they are not in `cache` yet; of several that need them at once one downloads.

    `what` names them for the reader of `say`. Raises FarandoleError (NO_NETWORK) naming the jar that cannot be had.
    """
    folder = cache / "jars"
    if any(not (folder / jar.path).exists() for jar in jars):
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive(cache / "jars.lock"):
            missing = [jar for jar in jars if not (folder / jar.path).exists()]
            if missing:
                say(f"downloading {what} ({len(missing)} jars, once)")
                _download_all(missing, cache, folder, repository)
    return [folder / jar.path for jar in jars]


def _download_all(jars: list[Jar], cache: Path, folder: Path, repository: str) -> None:
    with TemporaryDirectory(dir=cache, prefix="download-") as draft, ThreadPoolExecutor(DOWNLOADS) as pool:
        context = _context(Path(draft), repository)
        try:
            for download in [pool.submit(_download, jar, context, folder) for jar in jars]:
                download.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # a Ctrl-C waits for those under way, not for all
            raise


def _download(jar: Jar, context: MavenContext, folder: Path) -> None:
    """Fetch one jar; it enters the cache whole and checked, or not at all."""
    import requests  # the client jgo asks with: only its errors are wanted here

    component = context.project(jar.group, jar.artifact).at_version(jar.version)
    try:
        draft = component.artifact().resolve()
    except (requests.RequestException, RuntimeError) as error:  # RuntimeError: jgo's word for any status but 200
        raise FarandoleError(
            f"cannot download {jar.path.name} from {context.remote_repos['central']}: {_reason(error)}; the first "
            f"start needs the network once (behind a proxy set HTTPS_PROXY, for a mirror {places.MIRROR_VARIABLE})",
            ExitCode.NO_NETWORK,
        ) from error
    if (found := _sha256(draft)) != jar.sha256:
        raise FarandoleError(
            f"{jar.path.name} from {context.remote_repos['central']} is not the jar that was released: its SHA-256 is "
            f"{found}, expected {jar.sha256}",
            ExitCode.NO_NETWORK,
        )
    target = folder / jar.path
    target.parent.mkdir(parents=True, exist_ok=True)
    draft.replace(target)


def _reason(error: BaseException) -> str:
    """The innermost cause, without the wrapping of three HTTP libraries."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return str(error).rpartition("] ")[2] or type(error).__name__


def _context(folder: Path, repository: str) -> MavenContext:
    try:
        from jgo.maven import MavenContext, PythonResolver
    except ImportError:
        raise faults.missing_extra("jgo") from None
    return MavenContext(resolver=PythonResolver(), repo_cache=folder, remote_repos={"central": repository})


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def resolve() -> list[str]:
    """The lines of the lock, as jgo resolves Kafka's poms today (needs the network; minutes at worst)."""
    from jgo.parse import Coordinate

    with TemporaryDirectory() as folder:
        context = _context(Path(folder), places.repository())
        kafka = replace(Coordinate.parse(f"org.apache.kafka:kafka_2.13:{KAFKA}"), scope="compile")
        given, more = context.resolver.resolve([context.create_dependency(kafka)])
        artifacts = [one.artifact for one in (*given, *more) if one.scope in ("compile", "runtime")]
        log4j = next(one.version for one in artifacts if one.artifactId == "log4j-core")
        artifacts.append(context.project(*BRIDGE.split(":")).at_version(log4j).artifact())
        with ThreadPoolExecutor(DOWNLOADS) as pool:
            sums = pool.map(lambda one: _sha256(one.resolve()), artifacts)
            named = zip(artifacts, sums, strict=True)
            return [f"{one.groupId}:{one.artifactId}:{one.version} {digest}" for one, digest in named]


if __name__ == "__main__":
    title = f"# Kafka {KAFKA} as jgo resolved it, in classpath order: group:artifact:version SHA-256"
    Path(__file__).with_name(LOCK).write_text("\n".join([title, *resolve(), ""]), encoding="utf-8")
