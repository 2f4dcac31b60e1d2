"""The fake server: in a thread of its own, thousands of calls at once; what it is asked and how it answered is kept."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any
from uuid import uuid4

from farandole.models.configured import Limit
from farandole.testing.messages import calls as counting
from farandole.testing.messages.behaviours import Answer, Behaviour, Failure
from farandole.testing.messages.cache import Cache, prompt, tokens
from farandole.testing.messages.calls import Call, Price
from farandole.testing.messages.checking import checked
from farandole.testing.messages.connection import Connection, Request
from farandole.testing.messages.control import controlled
from farandole.testing.messages.limits import Limits
from farandole.testing.messages.serving import Serving

Rule = Callable[[dict[str, Any]], Behaviour | None]

#: Connections that may wait to be accepted: a whole run that begins at once.
_BACKLOG = 4096


class FakeMessages:
    """A Messages API for tests: `ANTHROPIC_BASE_URL` is its `url`, any key will do.

    Without a script or a rule it answers with the smallest object that fits the request's schema. Requests are checked as
    the API checks them. Nothing of it is random but ids.

    Args:
        port: where to listen, on the loopback interface; 0: a free one.
        enforce: limits of its own, a model and minute: what exceeds them gets 429 with retry-after.
        models: known ones; another gets 404. None: all whose names begin with "claude-".
        keys: valid API keys; another gets 401. None: any.

    >>> from farandole.testing.messages import Answer, overloaded, rate_limited
    >>> with FakeMessages() as fake:
    ...     fake.script([rate_limited(2), Answer({"category": "refund"})])
    ...     fake.rule(lambda body: overloaded() if "storm" in str(body["messages"]) else None)
    ...     assert fake.count == 0
    """

    def __init__(
        self,
        port: int = 0,
        *,
        enforce: Limit | None = None,
        models: Collection[str] | None = None,
        keys: Collection[str] | None = None,
    ) -> None:
        self._port, self._models, self._keys = port, models, keys
        self._limits, self._cache = Limits(enforce), Cache()
        self._scripted: deque[Behaviour] = deque()
        self._rules: list[Rule] = []
        self._default: Behaviour = Answer()
        self._broken: Exception | None = None
        self.calls: list[Call] = []  #: of messages, in the order in which they came
        self.token_counts = 0  #: calls of count_tokens, which cost nothing
        self.url = ""

    def __enter__(self) -> FakeMessages:
        listening = socket.create_server(("127.0.0.1", self._port), backlog=_BACKLOG)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listening, ready), name="fake-messages", daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop. Raises what a rule or a behaviour has raised, unless the block raises already."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        if self._broken and error is None:
            raise self._broken

    def reply(self, behaviour: Behaviour) -> None:
        """What every call gets that neither the script nor a rule has a word on."""
        self._default = behaviour

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

    @property
    def violations(self) -> list[Call]:
        """Calls that exceeded the limits of `enforce`."""
        return [call for call in self.calls if call.limited]

    def most_in_window(self, seconds: float, of: str = "calls") -> int:
        """The most that came within any span of so many seconds: "calls", or a kind of tokens, such as "input_tokens"."""
        return counting.most_in_window(self.calls, seconds, of)

    def totals(self, by: str = "model") -> dict[str, dict[str, int]]:
        """Calls, how many were whole, and tokens, by "model", "key" (the idempotency key) or "api_key"."""
        return counting.totals(self.calls, by)

    def cost(self, prices: Mapping[str, Price]) -> int:
        """Micro-dollars of all calls, by dollars for a million tokens (input, output, cache read, cache write)."""
        return counting.cost(self.calls, prices)

    def _run(self, listening: socket.socket, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        serving = self._loop.create_server(lambda: Connection(self._serve), sock=listening, backlog=_BACKLOG)
        server = self._loop.run_until_complete(serving)
        self._loop.call_soon(ready.set)
        self._loop.run_forever()
        server.close()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    async def _serve(self, request: Request, connection: Connection) -> None:
        if request.path.startswith("/_"):
            await connection.send(*controlled(self, request))
            return
        counting = request.path == "/v1/messages/count_tokens"
        call = Call({}, request.headers, time.monotonic(), request_id=f"req_{uuid4().hex[:24]}")
        call.body, refused = checked(request, counting=counting, keys=self._keys, models=self._models)
        if request.method != "POST" or request.path not in ("/v1/messages", "/v1/messages/count_tokens"):
            refused = Failure(404, "not_found_error", "Not Found")
        if counting and not refused:
            self.token_counts += 1
            body = json.dumps({"input_tokens": tokens(prompt(call.body))}).encode()
            await connection.send(200, {"content-type": "application/json", "request-id": call.request_id}, body)
            return
        self.calls.append(call)
        await self._answer(call, refused, connection)

    async def _answer(self, call: Call, refused: Failure | None, connection: Connection) -> None:
        counted = {} if refused else self._cache.usage(call.body)
        needed = counted.get("input_tokens", 0) + counted.get("cache_creation_input_tokens", 0)
        exceeded = None if refused else self._limits.admit(call.model, needed, call.came)
        call.limited = exceeded is not None
        serving = Serving(call, connection, self._limits, self._cache, {} if exceeded else counted)
        try:
            await serving.behave(refused or exceeded or self._behaviour(call.body))
        except asyncio.CancelledError:
            call.aborted, call.whole = True, False
            raise
        except Exception as error:  # noqa: BLE001  such as a schema without an instance: raised when the block ends
            self._broken = self._broken or error
            connection.close()
        finally:
            serving.end()

    def _behaviour(self, body: dict[str, Any]) -> Behaviour:
        if self._scripted:
            return self._scripted.popleft()
        try:
            return next((found for rule in self._rules if (found := rule(body))), self._default)
        except Exception as error:  # noqa: BLE001  the test's own: it is raised when the fake's block ends
            self._broken = self._broken or error
            return Failure(500, "api_error", f"a rule of the fake failed: {type(error).__name__}: {error}")
