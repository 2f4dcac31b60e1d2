"""Processes of the stack: found by a mark on their command line, so that a reused pid never fools anyone."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from farandole.stack import faults

try:
    import psutil
except ImportError:
    raise faults.missing_extra("psutil") from None

#: Seconds between two looks at a process or a port that is waited for.
POLL = 0.02


@dataclass(frozen=True, slots=True)
class Running:
    """A live process of a service and when it began (seconds since the epoch)."""

    pid: int
    started: float


def mark(data: Path, service: str) -> str:
    """The word on a service's command line that says which folder it serves.

    It is derived from the path and stored nowhere: a copy of a checkout, stack.json included, never takes the
    original's processes for its own, and a process whose pid was never written down is found all the same.
    """
    digest = hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:12]
    return f"farandole-{digest}-{service}"


def marked(pid: int | None, word: str) -> Running | None:
    """The process `pid` if it lives and carries the mark."""
    if pid is None or word not in _command_line(pid):
        return None
    started = start_time(pid)
    return None if started is None else Running(pid, started)


def _command_line(pid: int) -> str:
    """What a process was started with, or calls itself; empty when it is gone or of another user: not ours.

    Linux tells it in one read, ten times faster than asked through psutil; all processes are looked at many times.
    """
    try:
        if sys.platform == "linux":
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
        return " ".join(psutil.Process(pid).cmdline())
    except (OSError, psutil.Error):
        return ""


def find(word: str) -> list[Running]:
    """Every live process that carries the mark, children included, the oldest first."""
    found = [marked(pid, word) for pid in psutil.pids() if pid != os.getpid()]
    return sorted((process for process in found if process), key=lambda process: process.started)


def find_leader(word: str) -> Running | None:
    """The process of a service that was started with the mark, as opposed to its children."""
    return next((process for process in find(word) if leads(process.pid)), None)


def leads(pid: int) -> bool:
    """Whether a process shows the command line we gave it; Postgres's children show `postgres: mark: what they do`."""
    line = _command_line(pid)
    return bool(line) and not line.startswith("postgres:")


def start_time(pid: int) -> float | None:
    """When a live process began; None when it is gone."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def wait_for_end(pid: int) -> None:
    """Block until `pid` is gone (pidfd or kqueue where the system has them: no wake-ups)."""
    try:
        psutil.Process(pid).wait()
    except psutil.Error:
        return


def resident(pid: int) -> int:
    """Bytes of memory a process and its children hold; what they share is counted once where the system tells it."""
    total = 0
    try:
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            memory = one.memory_info()
            total += memory.rss - (getattr(memory, "shared", 0) if one is not process else 0)
    except psutil.Error:
        return total
    return total


def stop(word: str, gently: signal.Signals, patience: float) -> None:
    """End every process with the mark, `gently` first, by SIGKILL after `patience` seconds; all are gone then."""
    if not _end(find(word), word, gently, patience):
        kill(word)


def kill(word: str) -> None:
    """SIGKILL every process with the mark and wait until all are gone, children that come late included."""
    while left := find(word):
        _end(left, word, signal.SIGKILL, patience=10)


def _end(processes: list[Running], word: str, number: signal.Signals, patience: float) -> bool:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
    deadline = time.monotonic() + patience
    # not by its mark: while it ends a process has no command line any more, and its ports still
    while any(start_time(process.pid) == process.started for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return not find(word)


def port_holder(port: int) -> str:
    """Who listens on a port, as far as this user may know: ` (python, pid 42)`, or an empty text."""
    try:
        for one in psutil.net_connections("tcp"):
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid:
                return f" ({psutil.Process(one.pid).name()}, pid {one.pid})"
    except psutil.Error:
        return ""
    return ""
