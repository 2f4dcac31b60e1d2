"""Processes for a handler that computes: each has a pipe of its own and one call at a time, and is replaced when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import signal
import socket
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from farandole.agent import Agent
from farandole.envelope import Raw
from farandole.errors import ConfigurationError, Poison, Stopped
from farandole.event import Event
from farandole.process_main import HEAD, Kind, Start

log = logging.getLogger("farandole.processes")

#: Seconds. To start an interpreter and load the agent's file, on a machine that has other things to do.
START_WITHIN = 60.0
#: Tries. A process that dies while it starts may have been hit by chance; three in a row have not.
START_TRIES = 3
#: Seconds. An idle process that was asked to end is killed after this.
END_WITHIN = 2.0
#: Bytes read ahead before the pipe is held up.
_AHEAD = 1 << 20

#: What a process runs. The path comes first: it must find this very farandole.
_CODE = "import sys; sys.path[:] = {path!r}; from farandole.process_main import main; main({fd})"


class HandlerDied(Exception):
    """The process ended while it ran the handler: this attempt failed, no other one did."""


@dataclass(frozen=True, slots=True)
class _Answer:
    kind: Kind
    data: bytes

    def result(self) -> Any:
        """What the handler returned; raises what it raised, with its traceback."""
        if self.kind is Kind.RETURNED:
            try:
                return pickle.loads(self.data)
            except Exception as odd:
                raise Poison("wrong_output", f"what the handler returned cannot be read: {odd}") from odd
        text, packed = pickle.loads(self.data)
        try:
            error: BaseException = pickle.loads(packed)
        except Exception:  # noqa: BLE001  a class that only the process knows: its words are what is left
            error = RuntimeError(text)
        raise error


class _Child:
    """A process, and our end of its pipe."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.process = process
        self.ended = asyncio.ensure_future(process.wait())
        self._reader, self._writer = reader, writer
        # What the handler has forked may hold the pipe open: the end of the process must be noticed without it.
        self.ended.add_done_callback(lambda _: writer.transport.abort())

    @property
    def alive(self) -> bool:
        return not self.ended.done() and not self._reader.at_eof()

    async def ask(self, request: bytes) -> _Answer:
        """Send `request` and wait for the answer; what is logged meanwhile goes into our log. Raises HandlerDied."""
        try:
            self._writer.write(HEAD.pack(Kind.CALL, len(request)) + request)
            await self._writer.drain()
            while True:
                kind, size = HEAD.unpack(await self._reader.readexactly(HEAD.size))
                data = await self._reader.readexactly(size)
                if kind != Kind.LOGGED:
                    return _Answer(Kind(kind), data)
                _log(data)
        except (asyncio.IncompleteReadError, OSError):
            await asyncio.wait([self.ended], timeout=END_WITHIN)
            self.kill()  # it has closed its pipe and goes on
            raise HandlerDied(f"the process of the handler {_how(await self.ended)}") from None

    def kill(self) -> None:
        if not self.ended.done():
            # Not `process.kill()`: that looks whether it has ended, and takes the exit code away from who waits for it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Let it end in good order, if it is idle; kill it when it does not."""
        if self.alive:
            self._writer.write(HEAD.pack(Kind.END, 0))
        await asyncio.wait([self.ended], timeout=END_WITHIN)
        self.kill()
        await self.ended


class Processes:
    """Runs an agent's plain handler in up to `agent.cpu` processes; open while its `async with` block lasts.

    A process is a fresh interpreter that has loaded the agent's file. It ends with this process, however that ends. One
    is started at once, so that what is wrong is said before the first event; the others when there is work for them.
    """

    def __init__(self, agent: Agent) -> None:
        if agent.path is None:
            raise ConfigurationError(
                f"agent {agent.name}: its processes load it from its file; expected an agent that `load_agent` has loaded"
            )
        self._agent = agent
        self._start_with = pickle.dumps(
            Start(
                str(agent.path),
                logging.getLogger().level,
                logging.getLogger("farandole").getEffectiveLevel(),
            )
        )
        self._free = asyncio.Semaphore(agent.cpu)
        self._idle: list[_Child] = []
        self._children: set[_Child] = set()

    async def __aenter__(self) -> Self:
        self._idle.append(await self._start())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children - set(self._idle):
            child.kill()  # its call was given up
        await asyncio.gather(*(child.end() for child in self._children))

    @property
    def pids(self) -> list[int]:
        """Of the processes that run now."""
        return [child.process.pid for child in self._children if child.process.returncode is None]

    async def run(self, payload: Event, envelope: Raw, attempt: int) -> Any:
        """What the handler returns, or raises. The agent's timeout counts from when a process takes the call; it ends the
        process. Raises HandlerDied when the process ended by itself, Stopped when none can be started."""
        request = pickle.dumps((payload, dict(envelope), attempt))
        async with self._free:
            child = await self._take()
            answer = None
            try:
                async with asyncio.timeout(self._agent.timeout):
                    answer = await child.ask(request)
            except TimeoutError:
                raise TimeoutError(
                    f"the handler took longer than {self._agent.timeout:g} s, and its process was ended"
                ) from None
            finally:
                if answer:
                    self._idle.append(child)
                else:  # timed out, died, or the worker leaves
                    child.kill()
        return answer.result()

    async def _take(self) -> _Child:
        while self._idle:
            child = self._idle.pop()  # the one used last: its caches are warm
            if child.alive:
                return child
            child.kill()
        return await self._start()

    async def _start(self) -> _Child:
        """Raises Stopped: the file was loaded in this process, so that no event is to blame."""
        failure = ""
        for _ in range(START_TRIES):
            child = await self._spawn()
            answer = None
            try:
                async with asyncio.timeout(START_WITHIN):
                    answer = await child.ask(self._start_with)
            except HandlerDied as death:
                failure = str(death)
                continue
            except TimeoutError:
                failure = f"it was not ready within {START_WITHIN:g} s"
                break
            finally:
                if answer is None:
                    child.kill()
            if answer.kind is Kind.READY:
                return child
            failure, _packed = pickle.loads(answer.data)
            child.kill()
            break
        raise Stopped(f"agent {self._agent.name}: no process for its handler could be started: {failure}")

    async def _spawn(self) -> _Child:
        ours, theirs = socket.socketpair()
        with theirs:
            code = _CODE.format(path=sys.path, fd=theirs.fileno())
            # Always from the event loop's thread: Linux ends the process when the thread that started it ends.
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, stdin=asyncio.subprocess.DEVNULL, pass_fds=(theirs.fileno(),)
            )
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=_AHEAD)
        child = _Child(process, reader, writer)
        self._children.add(child)
        child.ended.add_done_callback(lambda _: self._children.discard(child))
        return child


def _log(data: bytes) -> None:
    record = logging.makeLogRecord(pickle.loads(data))
    logging.getLogger(record.name).handle(record)


def _how(code: int) -> str:
    """How a process ended, from its exit code."""
    if code >= 0:
        return f"ended with code {code}"
    hint = " (the system may have run out of memory)" if -code == signal.SIGKILL else ""
    return f"was killed by {signal.Signals(-code).name}{hint}"
