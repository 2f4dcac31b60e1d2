"""A real Apache Kafka in KRaft mode, one node, as a daemon."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from farandole.stack import faults, jars, java, places, ports, probe, training
from farandole.stack.broker import Node
from farandole.stack.service import VERSION_FILE, Launch, Service
from farandole.stack.state import Book

#: Seconds for the storage tool, which takes 0.8.
FORMAT_PATIENCE = 120
#: For a broker that lives for minutes: what its second compiler makes of it comes too late. A quarter of the computing of
#: the brokers of our own tests was that.
BRIEF = ["-XX:TieredStopAtLevel=1"]


class Kafka(Service):
    """One broker that is its own controller."""

    name = "kafka"
    label = "Kafka"
    option = "--kafka-port"
    gently = signal.SIGTERM

    def __init__(
        self, book: Book, cache: Path, repository: str | None, say: Callable[[str], None], brief: bool = False
    ) -> None:
        super().__init__(book)
        self.cache, self.repository, self.say, self.brief = cache, repository, say, brief

    @property
    def version(self) -> str:
        return jars.KAFKA

    @property
    def logs(self) -> list[Path]:
        """What Java itself said, and the broker's own log."""
        return [self.data / "kafka.out", self.log]

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return f"{ports.LOOPBACK}:{self.port}"

    @cached_property
    def program(self) -> tuple[java.Java, list[Path]]:
        """A Java and Kafka's jars; the first start on a machine downloads them here."""
        runtime = java.find()
        with faults.watching_the_disk(self.cache):
            return runtime, jars.fetch(self.cache, self.repository or places.repository(), self.say)

    @property
    def node(self) -> Node:
        """What is run, on the ports of now."""
        return Node(*self.program, self.mark, self.data, self.port, self.book.load().controller_port or 0)

    def prepare(self) -> None:
        if self.folder.exists():
            remedy = "`farandole down --wipe` removes the data, Postgres's too, then `farandole up` starts anew"
            self.require_own_data("Kafka", remedy)
        node = self.node
        with faults.watching_the_disk(self.data):
            if not self.folder.exists():
                self._format(node)
            (self.folder / VERSION_FILE).write_text(self.version + "\n", encoding="utf-8")

    def _format(self, node: Node) -> None:
        """Format beside its place and move it there when it is complete: a killed `up` leaves no half one."""
        draft = self.folder.with_name("kafka.new")
        shutil.rmtree(draft, ignore_errors=True)
        node.configure(draft)
        before = faults.lengths(self.logs)
        with self.logs[0].open("ab") as output:
            ended = subprocess.run(
                node.formatting(),
                env=node.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=FORMAT_PATIENCE,
                check=False,
                start_new_session=True,
            )
        if ended.returncode:
            raise faults.service_failed(self.label, "could not format its data folder", before, self.data)
        (draft / VERSION_FILE).write_text(self.version + "\n", encoding="utf-8")
        draft.rename(self.folder)

    def launching(self) -> Launch:
        node = self.node
        with faults.watching_the_disk(self.data):
            node.configure(self.folder)
        with faults.watching_the_disk(self.cache):
            archive = training.archive(node, self.cache, self.say)
        flags = [f"-XX:AOTCache={archive}"] if archive else []
        flags += BRIEF if self.brief else []
        return Launch(node.serving(*flags), node.environment, self.data / "kafka.out")

    def answers(self) -> bool:
        return probe.lives(self.port)

    def ready(self) -> bool:
        return probe.lives(self.port) and probe.coordinates(self.port)
