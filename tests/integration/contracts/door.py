"""A door in front of a service: counts the HTTP requests that pass, and can be shut."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from types import TracebackType

_REQUEST = re.compile(rb"(GET|PUT|POST|DELETE) (\S+) HTTP/1\.1\r\n")


class Door:
    """Listens on a port of its own and passes on what comes, byte for byte, to `host`:`port`.

    Shut, it ends all connections and refuses new ones, as the service does when it is stopped; the port stays its own.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self.requests: list[str] = []  #: "GET /path" each
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.port = 0
        self.unlock()

    def __enter__(self) -> Door:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut()

    def unlock(self) -> None:
        """Open, on the port it had before."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._welcome, args=(self._listener,), daemon=True).start()

    def shut(self) -> None:
        """End what passes now, refuse what comes."""
        if self._listener:
            _end(self._listener)  # a closing alone would leave the waiting for a caller
            self._listener = None
        with self._lock:
            for end in self._open:
                _end(end)
            self._open.clear()

    def count(self, part: str) -> int:
        """How many requests so far had `part` in their method and path."""
        return sum(part in request for request in self.requests)

    def _welcome(self, listener: socket.socket) -> None:
        while True:
            try:
                caller, _ = listener.accept()
                service = socket.create_connection(self._target, timeout=10)
            except OSError:
                return
            service.settimeout(None)
            with self._lock:
                self._open |= {caller, service}
            threading.Thread(target=self._carry, args=(caller, service, True), daemon=True).start()
            threading.Thread(target=self._carry, args=(service, caller, False), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, asking: bool) -> None:
        try:
            while data := source.recv(65536):
                if asking:
                    found = _REQUEST.findall(data)
                    self.requests.extend(f"{method.decode()} {path.decode()}" for method, path in found)
                sink.sendall(data)
        except OSError:
            pass  # shut meanwhile, or one side is gone
        finally:
            _end(sink)
            _end(source)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # ended already
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
