"""HTTP/1.1 as the fake server speaks it: one protocol object a connection, requests one after another, replies in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

#: Bytes. The API takes no larger body (https://platform.claude.com/docs/en/api/errors).
LARGEST_BODY = 32 << 20

#: Bytes. A longer head is none of a client's.
_LARGEST_HEAD = 1 << 16

_PHRASES = {**{status.value: status.phrase for status in HTTPStatus}, 529: "Overloaded"}


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request. `raw` is its body; None: it is too large, or its length is not known."""

    method: str
    path: str  #: without the query
    query: str
    headers: dict[str, str]  #: names in lower case
    raw: bytes | None


class Connection(asyncio.Protocol):
    """Gives each request to `serve` and cancels that when the client goes away."""

    def __init__(self, serve: Callable[[Request, Connection], Awaitable[None]]) -> None:
        self._serve = serve
        self._buffer = bytearray()
        self._begun: tuple[Request, int] | None = None  #: a head, and the length of the body that follows
        self._task: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._task:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def head(self, status: int, headers: Mapping[str, str], length: int | None) -> bytes:
        """The first part of a reply; without a length its body comes in chunks."""
        body = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}\r\n{lines}{body}\r\n\r\n".encode("latin-1")

    async def write(self, data: bytes) -> None:
        """Send, and wait while the client reads too slowly. Is cancelled when the client has gone."""
        self._transport.write(data)
        if not self._room.is_set():
            await self._room.wait()

    async def chunk(self, data: bytes) -> None:
        """A part of a body whose length is not known; an empty one ends it."""
        await self.write(b"%x\r\n%s\r\n" % (len(data), data))

    async def send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """A whole reply."""
        await self.write(self.head(status, headers, len(body)) + body)

    def close(self) -> None:
        """After what has been written."""
        self._transport.close()

    def _next(self) -> None:
        if self._task is None and not self._transport.is_closing() and (request := self._whole()):
            self._task = asyncio.ensure_future(self._run(request))

    async def _run(self, request: Request) -> None:
        await self._serve(request, self)
        self._task = None
        if request.raw is None or request.headers.get("connection", "").lower() == "close":
            self.close()
        self._next()

    def _whole(self) -> Request | None:
        """The next request, once all of it is here."""
        if self._begun is None:
            self._begun = self._head()
        if self._begun is None:
            return None
        request, length = self._begun
        if request.raw is None or len(self._buffer) >= length:
            self._begun = None
        else:
            return None
        raw = None if request.raw is None else bytes(self._buffer[:length])
        del self._buffer[:length]
        return Request(request.method, request.path, request.query, request.headers, raw)

    def _head(self) -> tuple[Request, int] | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _LARGEST_HEAD:
                self._transport.abort()
            return None
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, target, *_ = [*first.split(" "), "", ""]
        path, _, query = target.partition("?")
        if headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = headers.get("content-length", "0")
        fits = length.isdecimal() and int(length) <= LARGEST_BODY and "transfer-encoding" not in headers
        return Request(method, path, query, headers, b"" if fits else None), int(length) if fits else 0
