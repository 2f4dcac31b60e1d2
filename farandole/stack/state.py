"""stack.json: what `up` decided once (ports) and what runs now (pids), written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from farandole.stack import faults

try:
    from filelock import FileLock, Timeout
except ImportError:
    raise faults.missing_extra("filelock") from None

FILE = "stack.json"


@dataclass(slots=True)
class ServiceState:
    """One service: its port for good; pid and start time while it should be running."""

    port: int
    version: str
    pid: int | None = None
    started: float | None = None


@dataclass(slots=True)
class Owner:
    """The process a stack must not outlive."""

    pid: int
    started: float
    #: Nothing of the stack is wanted once its owner is gone, the data included.
    wipe: bool = False


@dataclass(slots=True)
class State:
    """All of stack.json."""

    kafka: ServiceState | None = None
    postgres: ServiceState | None = None
    controller_port: int | None = None
    #: An `up` is between its first process and its last check; found true without its lock held, it was killed.
    starting: bool = False
    owner: Owner | None = None
    #: None: the registry is no part of the stack.
    registry: ServiceState | None = None

    @property
    def ports(self) -> set[int]:
        services = (self.kafka, self.postgres, self.registry)
        known = (self.controller_port, *(service.port for service in services if service))
        return {port for port in known if port}


def load(data: Path) -> State:
    """The state of the stack in `data`; an empty one when there is none or it cannot be read.

    An unreadable file is no fault: processes are found by their mark, and ports are chosen anew.
    """
    try:
        found = json.loads((data / FILE).read_text(encoding="utf-8"))
        return State(
            kafka=ServiceState(**found["kafka"]) if found["kafka"] else None,
            postgres=ServiceState(**found["postgres"]) if found["postgres"] else None,
            controller_port=found["controller_port"],
            starting=found["starting"],
            owner=Owner(**found["owner"]) if found["owner"] else None,
            registry=ServiceState(**found["registry"]) if found.get("registry") else None,
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return State()


def save(data: Path, state: State) -> None:
    """Replace stack.json."""
    write(data / FILE, json.dumps(asdict(state), indent=2) + "\n")


def write(file: Path, text: str, mode: int = 0o600) -> None:
    """Write a file whole or not at all, readable by this user alone unless `mode` says more."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        draft.touch(mode, exist_ok=False)
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def exclusive(file: Path) -> FileLock:
    """A lock between processes, freed by the system when its holder dies: `with exclusive(path): …`."""
    return FileLock(file)


class Book:
    """stack.json of one data folder and the lock that lets one process at a time change the stack."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._lock = exclusive(data / "stack.lock")

    @contextmanager
    def locked(self, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold the lock; `waiting` is called once when another process has it. The system frees it with its holder."""
        self.data.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0.1)
        except Timeout:
            waiting()
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    def busy(self) -> bool:
        """Whether another process is at work on the stack now."""
        if not (self.data / "stack.lock").exists():
            return False
        try:
            with self._lock.acquire(timeout=0):
                return False
        except Timeout:
            return True

    def load(self) -> State:
        return load(self.data)

    @contextmanager
    def edit(self, *, stopping: bool = False) -> Iterator[State]:
        """Change the state; it is saved when the block ends well.

        While `stopping`, a full disk is no reason to fail: pids that stay written down harm nobody, their mark is gone.
        """
        found = load(self.data)
        yield found
        try:
            save(self.data, found)
        except OSError as error:
            if not (stopping and faults.is_full(error)):
                raise
