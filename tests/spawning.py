"""farandole's commands as processes that `tests.spawner` forks; elsewhere than on Linux, as `python -m farandole …`."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent

#: What may be forked: it patches nothing that others have imported by name.
FORKED = ("farandole", "tests.chaos.effects.deadly")

#: Seconds for a fork to begin; the first one waits for the imports.
_PATIENCE = 180


class Forked:
    """A process of the spawner; as far as tests go, a `subprocess.Popen`."""

    def __init__(self, pid: int, stdin: IO[bytes] | None) -> None:
        self.pid = pid
        self.stdin = stdin
        self.returncode: int | None = None
        self._over = threading.Event()

    def end(self, code: int) -> None:
        """The spawner has reaped it."""
        self.returncode = code
        self._over.set()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired."""
        if not self._over.wait(timeout) or self.returncode is None:
            raise subprocess.TimeoutExpired(f"pid {self.pid}", timeout or 0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Spawner:
    """The process that forks, and what it says. May be used from several threads."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._channel, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spawner", str(theirs.fileno())],
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        self._turn = threading.Lock()
        self._begun: Forked | None = None
        self._said = threading.Condition()
        self._stdin: IO[bytes] | None = None
        self._living: dict[int, Forked] = {}
        threading.Thread(target=self._listen, name="spawner", daemon=True).start()
        atexit.register(self._end)

    def start(self, asked: Mapping[str, Any], streams: Sequence[int], stdin: IO[bytes] | None) -> Forked:
        """Fork what is `asked`, with these descriptors for stdin, stdout and stderr."""
        with self._turn, self._said:
            self._begun, self._stdin = None, stdin
            socket.send_fds(self._channel, [json.dumps(asked).encode()], list(streams))
            assert self._said.wait_for(lambda: self._begun, _PATIENCE), "the spawner of the tests' commands has ended"
            begun = self._begun
        assert begun is not None
        return begun

    def _end(self) -> None:
        self._channel.shutdown(socket.SHUT_RDWR)
        self._process.wait()

    def _listen(self) -> None:
        """In its own thread: who has begun, and who has ended. When the spawner has gone nobody ends any more."""
        while text := self._channel.recv(4096):
            said = json.loads(text)
            with self._said:
                if pid := said.get("begun"):
                    self._begun = self._living[pid] = Forked(pid, self._stdin)
                    self._said.notify_all()
                else:
                    self._living.pop(said["ended"]).end(said["code"])


@cache
def _spawner() -> Spawner:
    return Spawner()


def started(
    arguments: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    out: IO[bytes],
    errors: IO[bytes] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    module: str = "farandole",
    session: bool = False,
) -> Forked | subprocess.Popen[bytes]:
    """`python -m MODULE ARGUMENTS` with its output in `out` (and `errors`).

    Args:
        stdin: as of Popen: subprocess.DEVNULL, subprocess.PIPE, or a file.
        session: it gets a session of its own.
    """
    if sys.platform != "linux" or module not in FORKED:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=cwd,
            env=environment,
            stdin=stdin,
            stdout=out,
            stderr=errors or subprocess.STDOUT,
            start_new_session=session,
        )
    asked = {
        "module": module,
        "arguments": list(arguments),
        "cwd": str(cwd),
        "environment": dict(environment),
        "session": session,
    }
    ours: IO[bytes] | None = None
    if stdin == subprocess.PIPE:
        theirs, mine = os.pipe()
        ours = os.fdopen(mine, "wb", 0)
    else:
        theirs = os.open(os.devnull, os.O_RDONLY) if isinstance(stdin, int) else os.dup(stdin.fileno())
    try:
        return _spawner().start(asked, [theirs, out.fileno(), (errors or out).fileno()], ours)
    finally:
        os.close(theirs)


def run(
    arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], stdin: str = "", timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """`farandole ARGUMENTS` to its end, as of subprocess.run: what it said, and how it ended."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        given.write(stdin.encode())
        given.seek(0)
        process = started(arguments, cwd=cwd, environment=environment, out=out, errors=errors, stdin=given)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        for file in (out, errors):
            file.seek(0)
        return subprocess.CompletedProcess(list(arguments), code, out.read().decode(), errors.read().decode())
