"""`python -m tests.spawner FD`: has farandole imported, and becomes its commands by forking: each starts in milliseconds.

What it is asked comes through a socket, one message a command, with the three descriptors that are to be its stdin, stdout
and stderr; back go how each was begun and how it ended. It imports nothing of a project, so that a command finds the one it
runs in, and starts no thread, so that a fork is whole.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from typing import Any

#: What nearly every command imports.
COMMON = (
    "farandole.cli",
    "farandole.worker.running",
    "farandole.worker.sweeper",
    "farandole.projector",
    "farandole.client",
    "farandole.health",
    "farandole.redrive",
    "farandole.stack.stack",
    "psycopg_pool",
    "aiosmtplib",
    "urllib.request",
)

#: Imported when the first command comes that has a key for models: it takes a second.
OF_MODELS = ("farandole.models.claude", "farandole.models.pricing", "genai_prices.data")

#: Bytes of a message, with a whole environment.
LARGEST = 1 << 20


def main() -> None:
    """Serve until the other end is closed. In a fork: be the command."""
    for name in COMMON:
        importlib.import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for those who started us
    channel = socket.socket(fileno=int(sys.argv[1]))
    asked = _serve(channel)
    if asked:
        runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)


def _serve(channel: socket.socket) -> dict[str, Any] | None:
    """What a fork is to be; None in the process that serves, at its end."""
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    while True:
        ready, _, _ = select.select([channel.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap(channel)
        if channel.fileno() not in ready:
            continue
        text, given, _, _ = socket.recv_fds(channel, LARGEST, 3)
        if not text:
            return None
        asked: dict[str, Any] = json.loads(text)
        if "ANTHROPIC_API_KEY" in asked["environment"]:
            for name in OF_MODELS:
                importlib.import_module(name)
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            for descriptor in (channel.detach(), woken, wakes):
                os.close(descriptor)
            _become(asked, given)
            return asked
        for descriptor in given:
            os.close(descriptor)
        channel.send(json.dumps({"begun": pid}).encode())


def _reap(channel: socket.socket) -> None:
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            channel.send(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}).encode())
    except ChildProcessError:
        return


def _become(asked: dict[str, Any], given: list[int]) -> None:
    """All that an interpreter finds when it is started."""
    for number in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor, place in zip(given, range(3), strict=True):
        os.dup2(descriptor, place)
    for descriptor in set(given) - {0, 1, 2}:
        os.close(descriptor)
    if asked["session"]:
        os.setsid()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding=encoding or None, errors=errors or None)  # type: ignore[union-attr]
    sys.argv = [asked["module"], *asked["arguments"]]
    sys.path[0] = asked["cwd"]


if __name__ == "__main__":
    main()
