"""The stack of one data folder: up, status, down, and a block in which it runs."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from farandole.errors import FarandoleError
from farandole.settings import ENDPOINTS_FILE
from farandole.stack import faults, interrupts, places, ports, process, state, watchdog
from farandole.stack.kafka import Kafka
from farandole.stack.looking import look_at
from farandole.stack.postgres import Postgres
from farandole.stack.service import Service
from farandole.stack.state import Book, Owner, ServiceState, State
from farandole.stack.status import Condition, Endpoints, Status


def _silent(line: str) -> None:
    """Say nothing."""


class Stack:
    """Kafka and Postgres as daemons whose data lies in one folder; any number of such stacks run side by side.

    `say` is given one line a step. `cache` holds the jars, shared between stacks. Every method may be called from any
    process: a lock file lets one at a time change the stack. A `brief` one is to live for minutes, as in a test run.
    """

    def __init__(
        self,
        data: Path,
        *,
        say: Callable[[str], None] = _silent,
        cache: Path | None = None,
        repository: str | None = None,
        brief: bool = False,
    ) -> None:
        self.data = data.absolute()
        self.say = say
        self.book = Book(self.data)
        self.kafka = Kafka(self.book, cache or places.cache_folder(), repository, say, brief)
        self.postgres = Postgres(self.book)
        self.services: tuple[Service, ...] = (self.kafka, self.postgres)

    @property
    def endpoints(self) -> Endpoints:
        """Where it serves (or served last)."""
        return Endpoints(self.kafka.bootstrap_servers, self.postgres.url)

    def up(
        self,
        *,
        kafka_port: int | None = None,
        postgres_port: int | None = None,
        owner_pid: int | None = None,
        wipe_with_owner: bool = False,
    ) -> Endpoints:
        """Start what does not run and return once both services answer; safe to call at any time, by several at once.

        A port that is given is used, and kept once both services came up; a service that runs on another is restarted.
        With `owner_pid` the stack stops when that process dies, whatever kills it (and its data goes then with
        `wipe_with_owner`), if it did not run before; without, a stack that has an owner loses it and stays.
        Raises FarandoleError, and KeyboardInterrupt on SIGINT, SIGTERM or SIGHUP; whatever it raises, nothing this
        call started is left running.
        """
        asked = {self.kafka.name: kafka_port, self.postgres.name: postgres_port}
        with interrupts.raised(), self._changing():
            self._clear_leftovers()
            before = self.book.load()
            asleep = [one for one in self.services if not self._serves(one, asked[one.name])]
            if asleep:
                self._require(asleep, asked)
            try:
                if asleep:
                    for service in asleep:
                        self._make_way(service, asked[service.name])
                    self._plan(asleep, asked)
                    self._start(asleep)
                if owner_pid is None or len(asleep) == len(self.services):
                    self._hand_over(owner_pid, wipe_with_owner)
                self._announce()
            except BaseException:
                with interrupts.ignored():
                    self._stop(asleep)
                    self._restore_ports(before)
                raise
            return self.endpoints

    def down(self, *, wipe: bool = False) -> None:
        """Stop both services; with `wipe` remove their data, ports and logs too. Nothing happens when they are down.

        Once it is at work no Ctrl-C ends it half way: it takes a second, and `STOP_PATIENCE` for each at most.
        """
        if not self.data.exists():
            return
        with self._changing(), interrupts.ignored():
            self._stop(list(self.services))
            watchdog.dismiss(self.data)
            with self.book.edit(stopping=True) as found:
                found.owner = None
            if wipe:
                self._wipe()

    def status(self) -> Status:
        """How both services are now. Removes the addresses of a stack that is not there any more."""
        busy = self.book.busy()
        services = tuple(look_at(service, self.book.load(), busy) for service in self.services)
        if all(service.state is Condition.RUNNING for service in services):
            return Status(services, self.endpoints)
        if not busy and any(service.state in (Condition.CRASHED, Condition.STOPPED) for service in services):
            (self.data / ENDPOINTS_FILE).unlink(missing_ok=True)
        return Status(services, None)

    @contextmanager
    def running(self, *, wipe: bool = False) -> Iterator[Endpoints]:
        """A block in which the stack runs.

        If it was started here it stops at the end, or when this process is killed; with `wipe` its folder goes too.
        """
        found = self.status()
        if found.running and found.endpoints:
            yield found.endpoints
            return
        endpoints = self.up(owner_pid=os.getpid(), wipe_with_owner=wipe)
        try:
            yield endpoints
        finally:
            with interrupts.ignored():
                owner = self.book.load().owner
                if owner and owner.pid == os.getpid():  # else somebody's `up` made it their own meanwhile
                    self.down(wipe=wipe)
                    if wipe:
                        shutil.rmtree(self.data, ignore_errors=True)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with faults.watching_the_disk(self.data):
            self.data.mkdir(parents=True, exist_ok=True)
            with self.book.locked(lambda: self.say("another command is at work on this stack; waiting for it")):
                yield

    def _clear_leftovers(self) -> None:
        """Undo an `up` that was killed half way: we hold the lock, so nobody is at work on it."""
        if self.book.load().starting:
            self.say("an earlier start was cut short; cleaning up")
            self._stop(list(self.services))

    def _serves(self, service: Service, asked: int | None) -> bool:
        return service.running() is not None and asked in (None, service.port) and service.answers()

    def _require(self, asleep: list[Service], asked: dict[str, int | None]) -> None:
        """Raise for what would keep a service from starting, while everything is still as it was."""
        faults.require_extras()
        faults.require_space(self.data)
        for service in asleep:
            known: ServiceState | None = getattr(self.book.load(), service.name)
            own = known.port if known else None
            port = asked[service.name] or own
            if port and not (port == own and service.running()):
                ports.require(port, service.label, service.option)

    def _make_way(self, service: Service, asked: int | None) -> None:
        """End what still runs of a service, and wait for its ports."""
        if not process.find(service.mark):
            return
        (self.data / ENDPOINTS_FILE).unlink(missing_ok=True)
        found = self.book.load()
        known: ServiceState | None = getattr(found, service.name)
        if known and asked not in (None, known.port):
            self.say(f"{service.label} runs on port {known.port}; it is restarted on port {asked}")
            service.stop()
        else:
            process.kill(service.mark)  # it lives and does not answer
        held = {known.port if known else None, found.controller_port if service is self.kafka else None}
        ports.await_free({port for port in held if port})

    def _plan(self, asleep: list[Service], asked: dict[str, int | None]) -> None:
        """Choose the ports that are not chosen yet."""
        (self.data / ".gitignore").write_text("*\n", encoding="utf-8")
        with self.book.edit() as found:
            found.starting = True
            taken = found.ports
            serving: set[int] = set()
            for service in self.services:
                known: ServiceState | None = getattr(found, service.name)
                port = asked[service.name] or (known.port if known else ports.choose(taken))
                running = (known.pid, known.started) if known else ()
                setattr(found, service.name, ServiceState(port, service.version, *running))
                taken.add(port)
                serving.add(port)
            if self.kafka in asleep:  # nobody but Kafka itself knows its controller's port, so any will do
                kept = found.controller_port
                usable = kept is not None and kept not in serving and ports.free(kept)
                found.controller_port = kept if usable else ports.choose(taken)

    def _restore_ports(self, before: State) -> None:
        """Forget the ports of a start that failed: the next one uses those that were kept before."""
        with self.book.edit(stopping=True) as found:
            for service in self.services:
                now: ServiceState | None = getattr(found, service.name)
                known: ServiceState | None = getattr(before, service.name)
                if now and known:
                    now.port = known.port
                elif now:
                    setattr(found, service.name, None)

    def _start(self, asleep: list[Service]) -> None:
        for service in asleep:
            service.prepare()
        for service in asleep:
            self.say(f"starting {service.label} {service.version} on {ports.LOOPBACK}:{service.port}")
            service.launch()
        for service in asleep:
            service.await_ready()

    def _hand_over(self, owner_pid: int | None, wipe: bool) -> None:
        """Write down who the stack must not outlive, and post a watchdog that sees to it."""
        watchdog.dismiss(self.data)
        started = process.start_time(owner_pid) if owner_pid else None
        if owner_pid and started is None:
            raise FarandoleError(f"the process {owner_pid}, which the stack is to end with, does not exist")
        with self.book.edit() as found:
            found.owner = Owner(owner_pid, started, wipe) if owner_pid and started else None
        if owner_pid:
            watchdog.post(self.data, owner_pid)

    def _announce(self) -> None:
        """Tell every other command where the stack is; the start is complete."""
        state.write(self.data / ENDPOINTS_FILE, json.dumps(asdict(self.endpoints), indent=2) + "\n")
        with self.book.edit() as found:
            found.starting = False

    def _stop(self, services: list[Service]) -> None:
        if services:
            (self.data / ENDPOINTS_FILE).unlink(missing_ok=True)
        for service in services:
            if process.find(service.mark):
                self.say(f"stopping {service.label}")
            service.stop()
        with self.book.edit(stopping=True) as found:
            found.starting = False

    def _wipe(self) -> None:
        """Remove everything but the lock, which is still held."""
        self.postgres.wipe()
        places.empty(self.data, keep="stack.lock")
