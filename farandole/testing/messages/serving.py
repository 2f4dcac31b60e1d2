"""Does to one request what a behaviour says, and writes down how that went."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from farandole.testing.messages import wire
from farandole.testing.messages.behaviours import Answer, Behaviour, Cut, Failure, Garbage, Hang, MidStream, Slow
from farandole.testing.messages.cache import Cache
from farandole.testing.messages.calls import Call
from farandole.testing.messages.connection import Connection
from farandole.testing.messages.limits import Limits

#: Statuses of the errors that may come in the middle of a stream.
_STATUS = {"overloaded_error": 529, "api_error": 500, "rate_limit_error": 429}

#: What a stream that breaks off says.
_BROKEN = {"overloaded_error": "Overloaded", "api_error": "Internal server error"}


class Serving:
    """One call on its connection. `counted`: the input side of its usage; empty for one that was not let in."""

    def __init__(
        self, call: Call, connection: Connection, limits: Limits, cache: Cache, counted: Mapping[str, int]
    ) -> None:
        self._call, self._connection = call, connection
        self._limits, self._cache, self._counted = limits, cache, counted

    async def behave(self, behaviour: Behaviour) -> None:
        """Returns when all is sent that is to be; a connection that is cut is closed."""
        self._call.behaviour = type(behaviour).__name__
        match behaviour:
            case Slow(seconds, then):
                await asyncio.sleep(seconds)
                await self.behave(then)
            case Hang(after) if after is None or not self._streams:
                await asyncio.Event().wait()
            case Failure(status, _, _, headers):
                body = wire.error(behaviour, self._call.request_id)
                await self._send(status, body, {"x-should-retry": _retried(status), **headers})
            case MidStream(kind, _) if not self._streams:
                await self.behave(Failure(_STATUS.get(kind, 500), kind, _BROKEN.get(kind, kind)))
            case Garbage(status, text, kind):
                await self._send(status, text.encode(), {"content-type": kind})
            case Cut("before"):
                self._connection.close()
            case Cut("headers"):
                await self._connection.write(b"HTTP/1.1 200 OK\r\ncontent-ty")
                self._connection.close()
            case _:
                await self._reply(behaviour)

    def end(self) -> None:
        """Write down that it is over: before the last bytes are sent, so that who has heard them finds it written."""
        if self._call.ended is None:
            self._call.ended = time.monotonic()
            if self._counted:
                self._limits.end(self._call.model, self._call.usage.get("output_tokens", 0), self._call.ended)

    @property
    def _streams(self) -> bool:
        return bool(self._call.body.get("stream"))

    async def _reply(self, behaviour: Behaviour) -> None:
        """What is computed, and therefore charged, whether the client hears all of it or not."""
        answer = behaviour if isinstance(behaviour, Answer) else Answer()
        whole = wire.message(answer, self._call.body, self._counted)
        self._call.usage, self._call.status = dict(whole["usage"]), 200
        self._cache.keep(self._call.body)
        if self._streams:
            await self._stream(behaviour, whole)
            return
        body = json.dumps(whole).encode()
        if isinstance(behaviour, Cut):
            head = self._connection.head(200, self._headers(), len(body))
            await self._connection.write(head + body[: len(body) // 2])
            self._connection.close()
            return
        self._call.whole = True
        await self._send(200, body)

    async def _stream(self, behaviour: Behaviour, whole: dict[str, Any]) -> None:
        headers = {**self._headers(), "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        await self._connection.write(self._connection.head(200, headers, None))
        for part in _parts(behaviour, whole, self._call.request_id):
            await self._connection.chunk(part)
        match behaviour:
            case Hang():
                await asyncio.Event().wait()
            case Cut():
                self._connection.close()
            case _:
                self._call.whole = isinstance(behaviour, Answer)
                self.end()
                await self._connection.chunk(b"")

    async def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self._call.status = status
        self.end()
        await self._connection.send(status, {**self._headers(), **(headers or {})}, body)

    def _headers(self) -> dict[str, str]:
        limits = self._limits.headers(self._call.model, time.monotonic()) if self._call.model else {}
        return {"content-type": "application/json", "request-id": self._call.request_id, **limits}


def _parts(behaviour: Behaviour, whole: Mapping[str, Any], request_id: str) -> list[bytes]:
    """The events of a stream, as far as it goes."""
    parts = list(wire.events(whole))
    match behaviour:
        case Cut():
            return parts[: len(parts) // 2]
        case Hang(after):
            return parts[:after]
        case MidStream(kind, after):
            error = {"type": kind, "message": _BROKEN.get(kind, kind)}
            return [*parts[:after], wire.event("error", {"error": error, "request_id": request_id})]
        case _:
            return parts


def _retried(status: int) -> str:
    """Whether the API's own clients would try again."""
    return "true" if status in (408, 409, 429) or status >= 500 else "false"
