"""One look at a service of the stack, beside what the book says of it."""

from __future__ import annotations

from farandole.stack import process
from farandole.stack.service import Service
from farandole.stack.state import ServiceState, State
from farandole.stack.status import Condition, ServiceStatus, size_of


def look_at(service: Service, book: State, busy: bool) -> ServiceStatus:
    """Its process, port, sizes and condition; `busy` says that an `up` or `down` is at work."""
    known: ServiceState | None = getattr(book, service.name)
    running = service.running()
    if running:
        answers = known is not None and service.answers()  # whose port was lost with stack.json cannot be asked
        condition = Condition.RUNNING if answers else Condition.STARTING if busy else Condition.SILENT
    else:
        condition = Condition.CRASHED if known and known.pid and not busy else Condition.STOPPED
    return ServiceStatus(
        name=service.name,
        state=condition,
        pid=running.pid if running else None,
        port=known.port if known else None,
        version=known.version if known else service.version,
        data_bytes=size_of(service.folder.resolve()),
        memory_bytes=process.resident(running.pid) if running else 0,
        since=running.started if running else None,
        log=str(service.log),
    )
