"""A real Schema Registry, Apicurio with Confluent's API, as a daemon; its schemas lie in one file of an H2 database.

H2 was chosen over a database of the stack's own Postgres and over a topic of its Kafka, which Apicurio can use as well:
the registry then starts beside both, and serves on while a test takes one of them away.
"""

from __future__ import annotations

import http.client
import shutil
import signal
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from farandole.stack import archive, faults, java, places, ports
from farandole.stack.service import VERSION_FILE, Launch, Service
from farandole.stack.state import Book

#: Of Confluent's API, below the address.
API = "/apis/ccompat/v7"
#: The oldest Java that Apicurio 3 runs on.
JAVA = 21
#: Seconds for an answer to the question whether it serves. The very first one takes 0.5 s, others a millisecond.
PATIENCE = 2.0

FLAGS = (
    "-Xmx128m",  # 205 MB resident with it, 250 after 1,600 schemas
    "-XX:+UseSerialGC",  # as for Kafka: no threads of a collector, and the smallest footprint
    "-XX:TieredStopAtLevel=1",  # it starts in 3 s in place of 5, and what it does later is little
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
    "-Djava.awt.headless=true",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)
SETTINGS = {
    "java.util.logging.manager": "org.jboss.logmanager.LogManager",
    "quarkus.http.host": ports.LOOPBACK,
    # Health and metrics want a second port, which cannot be switched off; nobody asks there, so any will do.
    "quarkus.management.host": ports.LOOPBACK,
    "quarkus.management.port": "0",
    "quarkus.http.access-log.enabled": "false",
    "quarkus.banner.enabled": "false",
    "quarkus.log.console.enabled": "false",
    "quarkus.log.file.enabled": "true",
    "quarkus.log.file.json.enabled": "false",
    "quarkus.log.file.format": "[%d{yyyy-MM-dd HH:mm:ss,SSS}] %p %m (%c)%e%n",
    "quarkus.log.file.rotation.max-file-size": "10M",
    "quarkus.log.file.rotation.max-backup-index": "2",
    "quarkus.log.file.rotation.rotate-on-boot": "false",
    'quarkus.log.category."io.quarkus.config".level': "ERROR",  # it warns of settings in its own archive
    "apicurio.usage.telemetry.enabled": "false",
    "apicurio.storage.kind": "sql",
    "apicurio.storage.sql.kind": "h2",
    "apicurio.datasource.jdbc.initial-size": "1",  # 20 of stock
    "apicurio.datasource.jdbc.min-size": "1",
    "apicurio.datasource.jdbc.max-size": "8",
}


class Registry(Service):
    """One Apicurio Registry."""

    name = "registry"
    label = "Schema Registry"
    option = "--registry-port"
    gently = signal.SIGTERM

    def __init__(self, book: Book, cache: Path, repository: str | None, say: Callable[[str], None]) -> None:
        super().__init__(book)
        self.cache, self.repository, self.say = cache, repository, say

    @cached_property
    def version(self) -> str:
        return archive.locked().version

    @property
    def logs(self) -> list[Path]:
        """What Java itself said, and the registry's own log."""
        return [self.data / "registry.out", self.log]

    @property
    def url(self) -> str:
        """Where clients of Confluent's API connect."""
        return f"http://{ports.LOOPBACK}:{self.port}{API}"

    @cached_property
    def program(self) -> tuple[java.Java, Path]:
        """A Java and the registry's jar; the first start on a machine downloads it here."""
        runtime = java.find(JAVA)
        with faults.watching_the_disk(self.cache):
            return runtime, archive.fetch(self.cache, self.repository or places.repository(), self.say)

    def prepare(self) -> None:
        if self.folder.exists():
            others = "Kafka's and Postgres's too"
            remedy = f"`farandole down --wipe` removes the data, {others}, then `farandole up --registry` starts anew"
            self.require_own_data("Apicurio", remedy)
        self.program  # noqa: B018  whatever is wrong with it is said before anything starts
        with faults.watching_the_disk(self.data):
            if not self.folder.exists():
                draft = self.folder.with_name("registry.new")
                shutil.rmtree(draft, ignore_errors=True)
                draft.mkdir()
                (draft / VERSION_FILE).write_text(self.version + "\n", encoding="utf-8")
                draft.rename(self.folder)

    def launching(self) -> Launch:
        runtime, jar = self.program
        # what earlier runs unpacked here and were killed over
        temporary = self.data / "registry.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        with faults.watching_the_disk(self.data):
            temporary.mkdir()
        settings = SETTINGS | {
            "farandole.stack": self.mark,
            "java.io.tmpdir": str(temporary),
            "apicurio.import.work-dir": str(temporary),
            "apicurio.storage.snapshot.location": str(temporary),
            "quarkus.http.port": str(self.port),
            "quarkus.log.file.path": str(self.log),
            # Every commit is in the file before its answer. By stock it may be half a second later, and a registry that
            # is killed in between gives the ids it had promised to other schemas.
            "apicurio.datasource.url": f"jdbc:h2:file:{self.folder / 'registry'};WRITE_DELAY=0",
        }
        properties = [f"-D{key}={value}" for key, value in settings.items()]
        command = [str(runtime.command), *FLAGS, *properties, "-jar", str(jar)]
        return Launch(command, java.ENVIRONMENT, self.logs[0])

    def answers(self) -> bool:
        """Whether it tells the level of compatibility, which it looks up in its database."""
        link = http.client.HTTPConnection(ports.LOOPBACK, self.port, timeout=PATIENCE)
        try:
            link.request("GET", f"{API}/config")
            return link.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            link.close()
