"""Child processes that run farandole commands: started, heard, stopped together, gone when their parent is."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from farandole.errors import ExitCode, FarandoleError

#: Seconds. A child that drains longer than this after SIGTERM is killed; its own grace period ends earlier.
STOP_WITHIN = 40.0
#: What `farandole run` itself ends with, having said why; any other code is of an accident.
REASONED = (
    ExitCode.USAGE,
    ExitCode.CONFIGURATION,
    ExitCode.NOT_FOUND,
    ExitCode.UNREACHABLE,
    ExitCode.TIMEOUT,
    ExitCode.STOPPED,
)

Sink = Callable[[str, str], None]


class Children:
    """Named child processes. Leaving the block stops them; if this process is killed, their stdin ends and they drain.

    `sink(name, line)` is given each line they print; without it they print where this process does.
    """

    def __init__(
        self, sink: Sink | None = None, cwd: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._sink = sink
        self._cwd = cwd
        self._environment = {**os.environ, **environment} if environment else None
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pids(self) -> dict[str, int]:
        return {name: child.pid for name, child in self._running.items()}

    def start(self, name: str, arguments: Sequence[str]) -> None:
        """Run `farandole <arguments> --leash`. Its own session, so that a Ctrl-C reaches it once: from here."""
        output = subprocess.PIPE if self._sink else None
        child = subprocess.Popen(
            [sys.executable, "-u", "-m", "farandole", *arguments, "--leash"],
            cwd=self._cwd,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT if self._sink else None,
            start_new_session=True,
        )
        self._running[name] = child
        if self._sink and child.stdout:
            reader = threading.Thread(
                target=_read, args=(name, child.stdout, self._sink), name=f"log-{name}", daemon=True
            )
            reader.start()
            self._readers.append(reader)

    def ended(self) -> dict[str, int]:
        """Exit codes of the children that have ended since this was last asked."""
        codes = {name: child.returncode for name, child in self._running.items() if child.poll() is not None}
        for name in codes:
            self._forget(name)
        return codes

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Pass a signal on; the first one drains a child, a second one ends it at once."""
        for child in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(number)

    def stop(self, *names: str, within: float = STOP_WITHIN) -> None:
        """Drain the children called `names` (default: all) and wait; kill those that do not end."""
        leaving = {name: self._running[name] for name in names or tuple(self._running) if name in self._running}
        for child in leaving.values():
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
        deadline = time.monotonic() + within
        try:
            for child in leaving.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(max(0.0, deadline - time.monotonic()))
        finally:  # also when a second Ctrl-C interrupts the waiting
            for name, child in leaving.items():
                if child.poll() is None:
                    child.kill()
                    child.wait()
                self._forget(name)

    def _forget(self, name: str) -> None:
        child = self._running.pop(name)
        if child.stdin:
            child.stdin.close()


def _read(name: str, output: IO[bytes], sink: Sink) -> None:
    for line in output:
        sink(name, line.decode("utf-8", "replace").rstrip("\n"))
    output.close()


def run_several(arguments: Sequence[str], processes: int) -> int:
    """Run the same command in several processes until a signal, or until one of them stops; returns the exit code.

    Raises FarandoleError naming the first process that ended by itself, once the others have drained.
    """
    fault: FarandoleError | None = None
    asked = 0
    with Children() as children, received() as signals:
        for number in range(1, processes + 1):
            children.start(f"{number}", arguments)
        while children.pids:
            with contextlib.suppress(queue.Empty):
                signals.get(timeout=0.1)
                children.signal()
                asked += 1
            for name, status in children.ended().items():
                found = _fault(name, status, asked)
                if found and not fault and not asked:
                    children.signal()
                fault = fault or found
    if fault:
        raise fault
    return int(ExitCode.INTERRUPTED if asked > 1 else ExitCode.OK)


def _fault(name: str, status: int, asked: int) -> FarandoleError | None:
    """What to say of a process that ended, unless it ended as it was `asked` to (by so many signals)."""
    if asked and status in (0, -signal.SIGTERM, ExitCode.INTERRUPTED):
        return None
    code = ExitCode(status) if status in REASONED else ExitCode.STOPPED
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with code {status}"
    return FarandoleError(f"process {name} {how}; so all of them stop", code)


@contextlib.contextmanager
def received() -> Iterator[queue.SimpleQueue[int]]:
    """Collect SIGINT and SIGTERM instead of being interrupted by them."""
    found: queue.SimpleQueue[int] = queue.SimpleQueue()
    before = {
        number: signal.signal(number, lambda number, _: found.put(number)) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def interrupted() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end this process as Ctrl-C does: through every `finally`."""

    def interrupt(_number: int, _frame: object) -> None:
        signal.raise_signal(signal.SIGINT)  # not `raise`: inside asyncio.run a SIGINT cancels the main task first

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # shells ignore it in the background
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def hold_leash() -> None:
    """In a child: drain as on SIGTERM when stdin ends, which the kernel sees to even when the parent was killed."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="leash", daemon=True).start()
