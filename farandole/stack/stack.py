"""The stack of one data folder: up, status, down, and a block in which it runs."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from farandole.errors import FarandoleError
from farandole.settings import ENDPOINTS_FILE
from farandole.stack import faults, interrupts, places, planning, ports, process, state, watchdog
from farandole.stack.kafka import Kafka
from farandole.stack.looking import look_at
from farandole.stack.postgres import Postgres
from farandole.stack.registry import Registry
from farandole.stack.service import Service
from farandole.stack.state import Book, Owner, State
from farandole.stack.status import Condition, Endpoints, Status


def _silent(line: str) -> None:
    """Say nothing."""


class Stack:
    """Kafka, Postgres and, if asked for, a Schema Registry as daemons whose data lies in one folder.

    Any number of such stacks run side by side. `say` is given one line a step. `cache` holds the jars, shared between
    stacks. Every method may be called from any process: a lock file lets one at a time change the stack. A `brief` one is
    to live for minutes, as in a test run.
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
        cache = cache or places.cache_folder()
        self.kafka = Kafka(self.book, cache, repository, say, brief)
        self.postgres = Postgres(self.book)
        self.registry = Registry(self.book, cache, repository, say)

    @property
    def services(self) -> tuple[Service, ...]:
        """Those that are part of it: the registry from the `up` that asks for it on."""
        return self._services(self.book.load().registry is not None)

    def _services(self, registry: bool) -> tuple[Service, ...]:
        return (self.kafka, self.postgres, self.registry) if registry else (self.kafka, self.postgres)

    @property
    def endpoints(self) -> Endpoints:
        """Where it serves (or served last)."""
        registry = self.registry.url if self.registry in self.services else None
        return Endpoints(self.kafka.bootstrap_servers, self.postgres.url, registry)

    def up(
        self,
        *,
        kafka_port: int | None = None,
        postgres_port: int | None = None,
        registry: bool | None = None,
        registry_port: int | None = None,
        owner_pid: int | None = None,
        wipe_with_owner: bool = False,
    ) -> Endpoints:
        """Start what does not run and return once all services answer; safe to call at any time, by several at once.

        With `registry` a Schema Registry becomes part of the stack, as it does with a port for it; with False it stops
        and is part no more, its data stays; with None (the default) that is as it was.
        A port that is given is used, and kept once the services came up; a service that runs on another is restarted.
        With `owner_pid` the stack stops when that process dies, whatever kills it (and its data goes then with
        `wipe_with_owner`), if it did not run before; without, a stack that has an owner loses it and stays.
        Raises FarandoleError, and KeyboardInterrupt on SIGINT, SIGTERM or SIGHUP; whatever it raises, nothing this
        call started is left running.
        """
        asked = {"kafka": kafka_port, "postgres": postgres_port, "registry": registry_port}
        with interrupts.raised(), self._changing():
            self._clear_leftovers()
            before = self.book.load()
            wanted = registry_port is not None or before.registry is not None
            members = self._services(wanted if registry is None else registry)
            asleep = [one for one in members if not self._serves(one, asked[one.name])]
            if asleep:
                planning.require(self.book, asleep, asked)
            try:
                if self.registry not in members:
                    self._part_with_registry()
                self._wake(asleep, members, asked)
                if owner_pid is None or len(asleep) == len(members):
                    self._hand_over(owner_pid, wipe_with_owner)
                self._announce()
            except BaseException:
                with interrupts.ignored():
                    self._undo(asleep, members, before)
                raise
            return self.endpoints

    def add_registry(self) -> Endpoints:
        """Start a Schema Registry beside what runs. Whoever owns the stack still does, unlike after `up`."""
        owner = self.book.load().owner
        if owner is None:
            return self.up(registry=True)
        return self.up(registry=True, owner_pid=owner.pid, wipe_with_owner=owner.wipe)

    def down(self, *, wipe: bool = False) -> None:
        """Stop all services; with `wipe` remove their data, ports and logs too. Nothing happens when they are down.

        Once it is at work no Ctrl-C ends it half way: it takes a second, and `STOP_PATIENCE` for each at most.
        """
        if not self.data.exists():
            return
        with self._changing(), interrupts.ignored():
            self._stop(self._services(registry=True))
            watchdog.dismiss(self.data)
            with self.book.edit(stopping=True) as found:
                found.owner = None
            if wipe:
                self._wipe()

    def status(self) -> Status:
        """How its services are now. Removes the addresses of a stack that is not there any more."""
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
            self._stop(self._services(registry=True))

    def _serves(self, service: Service, asked: int | None) -> bool:
        known = getattr(self.book.load(), service.name)
        if known is None or service.running() is None:
            return False
        return asked in (None, known.port) and service.answers()

    def _part_with_registry(self) -> None:
        """It is no part of the stack any more; its data stays for a later `up` that asks for it."""
        if process.find(self.registry.mark):
            self.say(f"stopping {self.registry.label}, which is no part of this stack any more")
            self.registry.stop()
        if self.book.load().registry:
            with self.book.edit() as found:
                found.registry = None

    def _wake(self, asleep: list[Service], members: tuple[Service, ...], asked: planning.Asked) -> None:
        if asleep:
            for service in asleep:
                planning.make_way(self.book, service, asked[service.name], self.say)
            planning.choose(self.book, members, asleep, asked)
            self._start(asleep)

    def _undo(self, asleep: list[Service], members: tuple[Service, ...], before: State) -> None:
        """Stop what a start that failed has started; where that was a newcomer, the others serve as before."""
        self._stop(asleep)
        planning.restore(self.book, members, before)
        if asleep and not set(asleep) & set(self.services):
            self._announce()

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
        known = {name: address for name, address in asdict(self.endpoints).items() if address}
        state.write(self.data / ENDPOINTS_FILE, json.dumps(known, indent=2) + "\n")
        with self.book.edit() as found:
            found.starting = False

    def _stop(self, services: Sequence[Service]) -> None:
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
