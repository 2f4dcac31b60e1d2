"""Kafka's jars: exactly those of kafka.lock, in a cache that all checkouts share.

`python -m farandole.stack.jars` writes the lock anew.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from farandole.stack import maven, places
from farandole.stack.maven import Locked
from farandole.stack.state import exclusive

KAFKA = "4.2.2"
#: Kafka's own pom leaves the bridge from slf4j to log4j to whoever runs it. It is added without what it depends on:
#: resolved together with Kafka, its parent pom would bring kafka-clients down to 3.9.1.
BRIDGE = "org.apache.logging.log4j:log4j-slf4j-impl"
LOCK = "kafka.lock"


def locked() -> list[Locked]:
    """The jars of kafka.lock, in the order of the classpath."""
    return maven.locked(LOCK)


def fetch(cache: Path, repository: str, say: Callable[[str], None]) -> list[Path]:
    """Kafka's classpath, as `fetch_all` says."""
    return fetch_all(locked(), f"Kafka {KAFKA}", cache, repository, say)


def fetch_all(jars: list[Locked], what: str, cache: Path, repository: str, say: Callable[[str], None]) -> list[Path]:
    """The files of `jars`, downloaded where they are not in `cache` yet; of several that need them at once one downloads.

    `what` names them for the reader of `say`. Raises FarandoleError (NO_NETWORK) naming the jar that cannot be had.
    """
    folder = cache / "jars"

    def keep(jar: Locked, draft: Path) -> None:
        target = folder / jar.path
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(target)

    if any(not (folder / jar.path).exists() for jar in jars):
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive(cache / "jars.lock"):
            missing = [jar for jar in jars if not (folder / jar.path).exists()]
            if missing:
                say(f"downloading {what} ({len(missing)} jars, once)")
                maven.download(missing, cache, repository, keep)
    return [folder / jar.path for jar in jars]


def resolve() -> list[str]:
    """The lines of the lock, as jgo resolves Kafka's poms today (needs the network; minutes at worst)."""
    from jgo.parse import Coordinate

    with TemporaryDirectory() as folder:
        context = maven.context_for(Path(folder), places.repository())
        kafka = replace(Coordinate.parse(f"org.apache.kafka:kafka_2.13:{KAFKA}"), scope="compile")
        given, more = context.resolver.resolve([context.create_dependency(kafka)])
        artifacts = [one.artifact for one in (*given, *more) if one.scope in ("compile", "runtime")]
        log4j = next(one.version for one in artifacts if one.artifactId == "log4j-core")
        artifacts.append(context.project(*BRIDGE.split(":")).at_version(log4j).artifact())
        with ThreadPoolExecutor(maven.DOWNLOADS) as pool:
            sums = pool.map(lambda one: maven.sha256(one.resolve()), artifacts)
            named = zip(artifacts, sums, strict=True)
            return [f"{one.groupId}:{one.artifactId}:{one.version} {digest}" for one, digest in named]


if __name__ == "__main__":
    title = f"# Kafka {KAFKA} as jgo resolved it, in classpath order: group:artifact:version SHA-256"
    Path(__file__).with_name(LOCK).write_text("\n".join([title, *resolve(), ""]), encoding="utf-8")
