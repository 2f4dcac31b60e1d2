"""Which service gets which port: decided before anything starts, kept for good, forgotten when the start failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from farandole.settings import ENDPOINTS_FILE
from farandole.stack import faults, ports, process
from farandole.stack.service import Service
from farandole.stack.state import Book, ServiceState, State

#: The ports that were asked for, by the names of services.
Asked = Mapping[str, int | None]


def require(book: Book, asleep: Iterable[Service], asked: Asked) -> None:
    """Raise for what would keep a service from starting, while everything is still as it was."""
    faults.require_extras()
    faults.require_space(book.data)
    for service in asleep:
        known: ServiceState | None = getattr(book.load(), service.name)
        own = known.port if known else None
        port = asked[service.name] or own
        if port and not (port == own and service.running()):
            if known and known.pid and not process.port_holder(port):  # it crashed, and its last threads are going
                ports.await_free({port})
            ports.require(port, service.label, service.option)


def make_way(book: Book, service: Service, asked: int | None, say: Callable[[str], None]) -> None:
    """End what still runs of a service, and wait for its ports."""
    if not process.find(service.mark):
        return
    (book.data / ENDPOINTS_FILE).unlink(missing_ok=True)
    found = book.load()
    known: ServiceState | None = getattr(found, service.name)
    if known and asked not in (None, known.port):
        say(f"{service.label} runs on port {known.port}; it is restarted on port {asked}")
        service.stop()
    else:
        process.kill(service.mark)  # it lives and does not answer
    held = {known.port if known else None, found.controller_port if service.name == "kafka" else None}
    ports.await_free({port for port in held if port})


def choose(book: Book, members: Iterable[Service], asleep: Iterable[Service], asked: Asked) -> None:
    """Choose the ports that are not chosen yet; from now on the stack is starting."""
    (book.data / ".gitignore").write_text("*\n", encoding="utf-8")
    with book.edit() as found:
        found.starting = True
        taken = found.ports
        serving: set[int] = set()
        for service in members:
            known: ServiceState | None = getattr(found, service.name)
            port = asked[service.name] or (known.port if known else ports.choose(taken))
            running = (known.pid, known.started) if known else ()
            setattr(found, service.name, ServiceState(port, service.version, *running))
            taken.add(port)
            serving.add(port)
        if any(service.name == "kafka" for service in asleep):  # nobody but Kafka itself knows its controller's port
            kept = found.controller_port
            usable = kept is not None and kept not in serving and ports.free(kept)
            found.controller_port = kept if usable else ports.choose(taken)


def restore(book: Book, services: Iterable[Service], before: State) -> None:
    """Forget the ports of a start that failed: the next one uses those that were kept before."""
    with book.edit(stopping=True) as found:
        for service in services:
            now: ServiceState | None = getattr(found, service.name)
            known: ServiceState | None = getattr(before, service.name)
            if now and known:
                now.port = known.port
            elif now:
                setattr(found, service.name, None)
