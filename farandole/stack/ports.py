"""Ports on the loopback address: chosen once for a checkout, kept, and checked before a service wants them."""

from __future__ import annotations

import random
import socket
import sys
import time

from farandole.errors import ExitCode, FarandoleError
from farandole.stack import process

LOOPBACK = "127.0.0.1"
#: Below the range systems take outgoing ports from (Linux from 32768, macOS from 49152): a port that is kept across
#: restarts must not be taken by some program's connection in between.
RANGE = range(20_000, 30_000)
#: Seconds for the ports of a process that has ended. The last threads of a Java hold them a moment longer than it lives.
FREE_PATIENCE = 10.0


def choose(taken: set[int]) -> int:
    """A port nobody listens on, not among `taken`."""
    for port in random.sample(RANGE, len(RANGE)):
        if port not in taken and free(port):
            return port
    raise FarandoleError(f"no free port between {RANGE.start} and {RANGE.stop - 1} on {LOOPBACK}", ExitCode.PORT_TAKEN)


def free(port: int) -> bool:
    """Whether a service could listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        if sys.platform != "win32":  # as the services do: closed connections of the last run do not count
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def await_free(wanted: set[int]) -> None:
    """Wait until nobody listens on the ports any more, for `FREE_PATIENCE` at most."""
    deadline = time.monotonic() + FREE_PATIENCE
    while not all(map(free, wanted)) and time.monotonic() < deadline:
        time.sleep(process.POLL)


def require(port: int, service: str, option: str) -> None:
    """Raise PORT_TAKEN, with the holder's name where the system tells it, when the port is not free."""
    if not free(port):
        raise FarandoleError(
            f"port {port}, which {service} of this stack uses, is held by another process{process.port_holder(port)}: "
            f"end it, or choose another port with `farandole up {option} PORT`",
            ExitCode.PORT_TAKEN,
        )
