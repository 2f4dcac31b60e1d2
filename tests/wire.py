"""A proxy before Postgres that counts what a client asks for, and holds or cuts the connection at any of it."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import SecretStr

from farandole.settings import Settings

#: Bytes at once.
_CHUNK = 65_536

#: What makes the server do something: a query, an execution, its end, data of a COPY and their end.
_ASKS = b"QESdc"


class Way(Enum):
    """What happens to the message at which the wire is armed."""

    PASS = "it goes on as if nothing were"
    BEFORE = "cut before the server has it"
    AFTER = "the server has it; cut at once"
    ANSWERED = "the server has done it and has said so; the client never hears"


class Wire:
    """Listens on a free port of the loopback address, for any number of connections one after the other or at once.

    `asked` counts the messages since `arm`; `pids` are the server's processes behind the connections that are open. While
    `open` is false, nobody gets through.
    """

    def __init__(self, settings: Settings) -> None:
        self._target = urlsplit(settings.database)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._links: set[_Link] = set()
        self._then: Callable[[], Way] = lambda: Way.PASS
        self._at, self._saying = 0, b""
        self.asked = 0
        self.open = True
        self.settings = settings.model_copy(update={"database_url": SecretStr(self._url())})
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def pids(self) -> list[int]:
        with self._lock:
            return [link.pid for link in self._links if link.pid]

    def arm(self, at: int = 0, then: Way | Callable[[], Way] = Way.PASS, saying: bytes = b"") -> None:
        """At the `at`-th message from now (0: never) do what `then` is, or returns; it may wait meanwhile.

        Only messages are counted whose statement holds the bytes `saying`.
        """
        with self._lock:
            self.asked, self._at, self._saying = 0, at, saying
            self._then = then if callable(then) else lambda: then

    def cut(self) -> None:
        """Break every connection, as the kernel does when a process is killed."""
        with self._lock:
            links = list(self._links)
        for link in links:
            link.cut()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def decide(self, statement: bytes) -> Way:
        """Called for each message of a client, with the statement that it belongs to."""
        with self._lock:
            if self._saying not in statement:
                return Way.PASS
            self.asked += 1
            if self.asked != self._at:
                return Way.PASS
        return self._then()

    def forget(self, link: _Link) -> None:
        with self._lock:
            self._links.discard(link)

    def _url(self) -> str:
        user = self._target.netloc.rpartition("@")[0]
        plain = dict(parse_qsl(self._target.query)) | {"sslmode": "disable", "gssencmode": "disable"}
        place = f"{user}@127.0.0.1:{self._listener.getsockname()[1]}"
        return urlunsplit(self._target._replace(netloc=place, query=urlencode(plain)))

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                if not self.open:
                    client.close()
                    continue
                try:
                    server = socket.create_connection((self._target.hostname or "", self._target.port or 5432))
                except OSError:  # the database is away
                    client.close()
                    continue
                link = _Link(self, client, server)
                with self._lock:
                    self._links.add(link)
                link.start()


class _Link:
    """One connection: a thread for either direction."""

    def __init__(self, wire: Wire, client: socket.socket, server: socket.socket) -> None:
        self._wire = wire
        self._client, self._server = client, server
        self._swallowing = False
        self.pid = 0
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        for pump in (self._forward, self._back):
            threading.Thread(target=self._run, args=(pump,), daemon=True).start()

    def cut(self) -> None:
        for one in (self._client, self._server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _run(self, pump: Callable[[], None]) -> None:
        try:
            pump()
        except OSError:
            pass
        finally:
            self.cut()
            self._wire.forget(self)

    def _forward(self) -> None:
        """What the client says; its first message has no type."""
        statement = b""
        for kind, message in _messages(self._client, greeting=True):
            statement = message if kind in b"PQ" else statement
            way = self._wire.decide(statement) if kind in _ASKS else Way.PASS
            if way is Way.BEFORE:
                return
            self._swallowing = way is Way.ANSWERED and kind not in b"Ed"  # those are not answered by themselves
            self._server.sendall(message)
            if way is Way.AFTER or (way is Way.ANSWERED and not self._swallowing):
                return

    def _back(self) -> None:
        """What the server says."""
        for kind, message in _messages(self._server):
            if self._swallowing:
                if kind in b"ZG":  # ready for the next, or for the data of a COPY
                    return
                continue
            if kind == b"K":
                self.pid = struct.unpack("!i", message[5:9])[0]
            self._client.sendall(message)


def _messages(source: socket.socket, greeting: bool = False) -> Iterator[tuple[bytes, bytes]]:
    """Type and whole bytes of each message; ends with the connection."""
    buffer = b""
    while chunk := source.recv(_CHUNK):
        buffer += chunk
        while len(buffer) >= (5 - greeting):
            length = struct.unpack_from("!i", buffer, 1 - greeting)[0] + 1 - greeting
            if len(buffer) < length:
                break
            message, buffer = buffer[:length], buffer[length:]
            yield (b"\0" if greeting else message[:1]), message
            greeting = False


@contextmanager
def wired(settings: Settings) -> Iterator[Wire]:
    """A wire for the length of a block."""
    wire = Wire(settings)
    try:
        yield wire
    finally:
        wire.close()
