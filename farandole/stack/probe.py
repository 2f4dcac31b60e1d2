"""Whether a broker serves: three kinds of request, spoken by hand, for no client library starts as fast."""

from __future__ import annotations

import socket
import struct

from farandole.stack import ports

#: Seconds. A broker on the loopback address answers in a millisecond; one that is stopped never does.
PATIENCE = 0.5
METADATA, FIND_COORDINATOR, INIT_PRODUCER_ID = 3, 10, 22
#: The kinds of coordinator there are, each with an internal topic that the first request for it creates.
GROUP, TRANSACTION = 0, 1
#: Error codes follow the four bytes of the throttle time.
NO_ERROR = bytes(6)
#: One id for each of the four partitions of the transactions' topic: Java's hashes of these follow each other.
PROBES = [b"farandole-%d" % number for number in range(4)]


def lives(port: int) -> bool:
    """Whether the broker on the port lists itself as alive, which it does once topics can be made."""
    try:
        return bool(struct.unpack(">i", _ask(port, METADATA, struct.pack(">i", 0), 4))[0] > 0)
    except (OSError, EOFError):
        return False


def coordinates(port: int) -> bool:
    """Whether groups and transactions can begin; asking makes the broker create what they need.

    Without this the very first producer of a new stack waits a second and its client prints a warning.
    """
    try:
        for kind in (GROUP, TRANSACTION):
            if _ask(port, FIND_COORDINATOR, _text(PROBES[0]) + bytes([kind]), 6) != NO_ERROR:
                return False
        timeout = struct.pack(">i", 1000)  # milliseconds, of a transaction that never begins
        return all(_ask(port, INIT_PRODUCER_ID, _text(probe) + timeout, 6) == NO_ERROR for probe in PROBES)
    except (OSError, EOFError):
        return False


def _text(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value


def _ask(port: int, request: int, body: bytes, size: int) -> bytes:
    """The first bytes of the answer to a request in its version 1, without the header."""
    message = struct.pack(">hhih", request, 1, 1, -1) + body  # correlation id 1, no client id
    with socket.create_connection((ports.LOOPBACK, port), PATIENCE) as link:
        link.settimeout(PATIENCE)
        link.sendall(struct.pack(">i", len(message)) + message)
        return _read(link, 8 + size)[8:]


def _read(link: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = link.recv(size - len(received))
        if not part:
            raise EOFError
        received += part
    return received
