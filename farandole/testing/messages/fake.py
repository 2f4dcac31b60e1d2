"""The fake server: HTTP/1.1 on asyncio, in a thread of its own; thousands of calls at once."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any
from uuid import uuid4

from farandole.testing.messages import calls as counting
from farandole.testing.messages import wire
from farandole.testing.messages.behaviours import Answer, Behaviour, Cut, Failure, Garbage, MidStream, Slow
from farandole.testing.messages.calls import Call, Price

Rule = Callable[[dict[str, Any]], Behaviour | None]

#: Statuses of the errors that may come in the middle of a stream.
_STATUS = {"overloaded_error": 529, "api_error": 500, "rate_limit_error": 429}

_HEAD = "HTTP/1.1 {status} X\r\ncontent-type: {type}\r\nrequest-id: {id}\r\n{more}"


class FakeMessages:
    """A Messages API for tests: `ANTHROPIC_BASE_URL` is its `url`, any key will do.

    Without a script or a rule it answers with the smallest object that fits the request's schema. Requests are checked as
    the API checks them, roughly. Nothing of it is random.

    >>> with FakeMessages() as fake:
    ...     fake.script([rate_limited(2), Answer({"category": "refund"})])
    ...     fake.rule(lambda body: overloaded() if "storm" in str(body["messages"]) else None)
    ...     assert fake.count == 0
    """

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._scripted: deque[Behaviour] = deque()
        self._rules: list[Rule] = []
        self._prefixes: set[str] = set()
        self.calls: list[Call] = []  #: in the order in which they came
        self.url = ""

    def __enter__(self) -> FakeMessages:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="fake-messages", daemon=True)
        self._thread.start()
        ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def script(self, behaviours: Iterable[Behaviour]) -> None:
        """What the next calls get, in this order; before any rule."""
        self._scripted.extend(behaviours)

    def rule(self, rule: Rule) -> None:
        """A function of a request's body that says what it gets, or None. The first rule with a word on it decides."""
        self._rules.append(rule)

    @property
    def count(self) -> int:
        """Requests so far, however they ended."""
        return len(self.calls)

    @property
    def most_in_flight(self) -> int:
        """The most calls that were under way at once."""
        return counting.most_in_flight(self.calls, time.monotonic())

    def most_in_window(self, seconds: float) -> int:
        """The most calls that came within any span of so many seconds."""
        return counting.most_in_window(self.calls, seconds)

    def cost(self, prices: Mapping[str, Price]) -> int:
        """Micro-dollars of all calls, by dollars for a million tokens (input, output, cache read, cache write)."""
        return counting.cost(self.calls, prices)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", self._port, backlog=4096, limit=1 << 22)
        )
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client has gone: its call is counted, as far as it came
        except asyncio.CancelledError:
            return  # the server ends
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = head[0].split(" ", 2)
        if path.split("?")[0] == "/_calls":
            return await self._send(writer, 200, json.dumps([call.to_json() for call in self.calls]).encode())
        call = Call({}, headers, time.monotonic())
        refused = _checked(method, path, headers, raw, call)
        self.calls.append(call)
        try:
            return await self._behave(refused or self._behaviour(call.body), call, writer)
        finally:
            call.ended = time.monotonic()

    def _behaviour(self, body: dict[str, Any]) -> Behaviour:
        if self._scripted:
            return self._scripted.popleft()
        return next((found for rule in self._rules if (found := rule(body))), Answer())

    async def _behave(self, behaviour: Behaviour, call: Call, writer: asyncio.StreamWriter) -> bool:
        call.behaviour = type(behaviour).__name__
        match behaviour:
            case Slow(seconds, then):
                await asyncio.sleep(seconds)
                return await self._behave(then, call, writer)
            case Failure(status, _, _, headers):
                call.status = status
                body = wire.error(behaviour, f"req_{uuid4().hex[:24]}")
                return await self._send(writer, status, body, headers)
            case MidStream(kind, _) if not call.body.get("stream"):
                return await self._behave(Failure(_STATUS[kind], kind, "in the middle"), call, writer)
            case Garbage(status, text, kind):
                call.status = status
                return await self._send(writer, status, text.encode(), kind=kind)
            case Cut("before"):
                return False
            case Cut("headers"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-ty")
                await writer.drain()
                return False
            case _:
                return await self._reply(behaviour, call, writer)

    async def _reply(self, behaviour: Behaviour, call: Call, writer: asyncio.StreamWriter) -> bool:
        """What is computed, and therefore charged, whether the client hears all of it or not."""
        answer = behaviour if isinstance(behaviour, Answer) else Answer()
        whole = wire.message(answer, call.body, self._cached(call.body))
        call.usage, call.status = whole["usage"], 200
        if call.body.get("stream"):
            return await self._stream(behaviour, whole, call, writer)
        body = json.dumps(whole).encode()
        if isinstance(behaviour, Cut):
            writer.write(_head(200, len(body), {}) + body[: len(body) // 2])
            await writer.drain()
            return False
        call.whole = True
        return await self._send(writer, 200, body)

    async def _stream(
        self, behaviour: Behaviour, whole: dict[str, Any], call: Call, writer: asyncio.StreamWriter
    ) -> bool:
        writer.write(_head(200, None, {}, "text/event-stream"))
        parts = list(wire.events(whole))
        if isinstance(behaviour, Cut | MidStream):
            parts = parts[: behaviour.after if isinstance(behaviour, MidStream) else len(parts) // 2]
        if isinstance(behaviour, MidStream):
            parts.append(wire.event("error", {"error": {"type": behaviour.type, "message": "in the middle"}}))
        for part in parts:
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
        if isinstance(behaviour, Cut):
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        call.whole = not isinstance(behaviour, MidStream)
        return True

    def _cached(self, body: Mapping[str, Any]) -> bool | None:
        """Whether the request's system part was sent before, if it is to be cached."""
        system = json.dumps([body.get("model"), body.get("system")])
        if "cache_control" not in system:
            return None
        known = system in self._prefixes
        self._prefixes.add(system)
        return known

    async def _send(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        kind: str = "application/json",
    ) -> bool:
        writer.write(_head(status, len(body), headers or {}, kind) + body)
        await writer.drain()
        return True


def _head(status: int, length: int | None, headers: Mapping[str, str], kind: str = "application/json") -> bytes:
    body = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = _HEAD.format(status=status, type=kind, id=f"req_{uuid4().hex[:24]}", more=more)
    return f"{head}{body}\r\n\r\n".encode()


def _checked(method: str, path: str, headers: Mapping[str, str], raw: bytes, call: Call) -> Failure | None:
    """What the API says to a request that is none; the body of one that is goes into `call`."""
    if (method, path.split("?")[0]) != ("POST", "/v1/messages"):
        return Failure(404, "not_found_error", f"Not found: {method} {path}")
    try:
        body = json.loads(raw)
    except ValueError:
        return Failure(400, "invalid_request_error", "The request body is not valid JSON")
    if isinstance(body, dict):
        call.body = body
    if not (headers.get("x-api-key") or headers.get("authorization")):  # the client has sent either, by its version
        return Failure(401, "authentication_error", "an API key is required")
    for name, kind in (("model", str), ("max_tokens", int), ("messages", list)):
        if not isinstance(call.body.get(name), kind):
            return Failure(400, "invalid_request_error", f"{name}: Field required")
    if not call.body["messages"]:
        return Failure(400, "invalid_request_error", "messages: at least one message is required")
    return None
