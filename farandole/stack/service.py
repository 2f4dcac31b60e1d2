"""What the services have in common: a daemon that is prepared once, launched, awaited, stopped or killed."""

from __future__ import annotations

import signal
import subprocess
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from farandole.errors import ExitCode, FarandoleError
from farandole.stack import faults, process
from farandole.stack.process import Running
from farandole.stack.state import Book, ServiceState, State

#: Seconds a service may take to answer after its launch. 1-2 s are usual; crash recovery of a large log takes longer.
START_PATIENCE = 120.0
#: Seconds a service may take to stop by itself before it is killed. 0.3 s are usual.
STOP_PATIENCE = 20.0
#: In the data folder of a service whose own files do not say which version wrote them.
VERSION_FILE = "VERSION"
#: Bytes. A log longer than this is put aside (one old copy is kept) when its service starts.
LOG_LIMIT = 10 * 2**20


@dataclass(frozen=True, slots=True)
class Launch:
    """How a process of the service is started."""

    command: list[str]
    environment: dict[str, str]
    output: Path
    options: dict[str, Any] = field(default_factory=dict)


class Service(ABC):
    """One daemon of a stack; `start`, `stop` and `kill` make outages, `up` and `down` are built of the same steps."""

    name: ClassVar[str]
    label: ClassVar[str]
    option: ClassVar[str]
    gently: ClassVar[signal.Signals]

    def __init__(self, book: Book) -> None:
        self.book = book
        self.data = book.data
        self.mark = process.mark(book.data, self.name)
        self._child: subprocess.Popen[bytes] | None = None
        self._since = faults.lengths(self.logs)

    @property
    @abstractmethod
    def version(self) -> str: ...

    @property
    def folder(self) -> Path:
        """Where its data lies."""
        return self.data / self.name

    @property
    def log(self) -> Path:
        return self.data / f"{self.name}.log"

    @property
    def logs(self) -> list[Path]:
        return [self.log]

    @abstractmethod
    def prepare(self) -> None:
        """Check the data folder's version; make it, once. Raises FarandoleError."""

    @abstractmethod
    def launching(self) -> Launch: ...

    @abstractmethod
    def answers(self) -> bool:
        """Whether it serves clients now."""

    def ready(self) -> bool:
        """Whether a start is complete: what the first clients need is there too."""
        return self.answers()

    def entry(self, found: State) -> ServiceState:
        """Its part of stack.json, which `up` has filled."""
        entry: ServiceState | None = getattr(found, self.name)
        if entry is None:
            raise LookupError(f"{self.label} of {self.data} was never started: call Stack.up() first")
        return entry

    @property
    def port(self) -> int:
        return self.entry(self.book.load()).port

    def require_own_data(self, product: str, remedy: str) -> None:
        """Raise DATA_VERSION with the remedy when `VERSION_FILE` in the folder names another minor version of `product`."""
        marker = self.folder / VERSION_FILE
        found = marker.read_text(encoding="utf-8").strip() if marker.exists() else "an unknown version"
        if found.split(".")[:2] != self.version.split(".")[:2]:
            raise FarandoleError(
                f"{self.folder} was written by {product} {found}, and this is {self.version}, which does not go on with it: "
                f"{remedy}",
                ExitCode.DATA_VERSION,
            )

    def running(self) -> Running | None:
        """Its live process: the one written down if it carries the mark, else whichever does."""
        entry: ServiceState | None = getattr(self.book.load(), self.name)
        return process.marked(entry.pid if entry else None, self.mark) or process.find_leader(self.mark)

    def launch(self) -> None:
        """Start the process, in a session of its own so that no Ctrl-C of a terminal reaches it, and write it down."""
        launch = self.launching()
        _put_aside(launch.output)
        self._since = faults.lengths(self.logs)
        with faults.watching_the_disk(self.data), launch.output.open("ab") as output:
            self._child = subprocess.Popen(
                launch.command,
                env=launch.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **launch.options,
            )
            with self.book.edit() as found:
                entry = self.entry(found)
                entry.pid, entry.started = self._child.pid, process.start_time(self._child.pid)

    def await_ready(self) -> None:
        """Wait until it answers; STACK_FAILED (or DISK_FULL) with the end of its log when it ends or stays silent."""
        deadline = time.monotonic() + START_PATIENCE
        while not self.ready():
            why = ""
            if self._child is not None and (code := self._child.poll()) is not None:
                why = f"ended while starting (code {code})"
            elif time.monotonic() > deadline:
                why = f"did not answer within {START_PATIENCE:.0f} s"
            if why:
                raise faults.service_failed(self.label, why, self._since, self.data)
            time.sleep(process.POLL)

    def start(self) -> None:
        """Start it again, on the same port and data, and wait until it answers; nothing happens when it runs."""
        with self.book.locked():
            if self.running() and self.answers():
                return
            process.kill(self.mark)
            self.launch()
            self.await_ready()

    def stop(self) -> None:
        """Stop it in order; its data and its port stay."""
        with self.book.locked():
            process.stop(self.mark, self.gently, STOP_PATIENCE)
            self._forget()

    def kill(self) -> None:
        """SIGKILL it, as a crash would; stack.json still says that it should be running."""
        process.kill(self.mark)
        self._reap()

    def _forget(self) -> None:
        self._reap()
        if getattr(self.book.load(), self.name) is not None:
            with self.book.edit(stopping=True) as found:
                entry = self.entry(found)
                entry.pid = entry.started = None

    def _reap(self) -> None:
        if self._child is not None:
            self._child.kill()  # for a few microseconds after its launch a process has no command line to be found by
            self._child.wait()
            self._child = None


def _put_aside(log: Path) -> None:
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_name(log.name + ".old"))
