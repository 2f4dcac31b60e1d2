"""What a look at the stack finds, for people and for `--json`."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class Condition(StrEnum):
    """How a service is."""

    RUNNING = "running"
    STARTING = "starting"  #: an `up` is at work on it now
    SILENT = "silent"  #: its process lives and does not answer
    CRASHED = "crashed"  #: it should be running and its process is gone
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where clients find the stack; the URL holds the password and is kept out of repr()."""

    kafka_bootstrap_servers: str
    database_url: str = field(repr=False)
    #: Of the API that Confluent's clients speak; None: the stack runs no Schema Registry.
    schema_registry_url: str | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that give other programs these addresses; what is not there is left out."""
        found = {name.upper(): value for name, value in asdict(self).items()}
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One service; sizes in bytes, `since` in seconds since the epoch."""

    name: str
    state: Condition
    pid: int | None
    port: int | None
    version: str
    data_bytes: int
    memory_bytes: int
    since: float | None
    log: str


@dataclass(frozen=True, slots=True)
class Status:
    """All services of a stack, and the addresses while all are running."""

    services: tuple[ServiceStatus, ...]
    endpoints: Endpoints | None

    @property
    def running(self) -> bool:
        return all(service.state is Condition.RUNNING for service in self.services)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; addresses are null while a service is not running."""
        addresses = asdict(self.endpoints) if self.endpoints else dict.fromkeys(Endpoints.__slots__)
        return {"services": {one.name: asdict(one) for one in self.services}, **addresses}


def size_of(folder: Path) -> int:
    """Bytes on disk below a folder; Kafka's index files are sparse, so their length would mislead."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(root) / name).lstat().st_blocks * 512
            except OSError:  # deleted while we look
                continue
    return total
