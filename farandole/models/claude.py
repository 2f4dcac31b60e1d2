"""Claude through Anthropic's own client, whose retries are off: one call is one call. The only module that imports it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import anthropic
import httpx2

from farandole.models.assembling import Assembly, ErrorEvent, reply
from farandole.models.errors import (
    BadRequest,
    ConnectionFailed,
    ContextTooLong,
    ModelError,
    NoCredit,
    NotAllowed,
    Overloaded,
    RateLimited,
    ServerFailed,
    StreamCut,
    TimedOut,
)
from farandole.models.retry_after import retry_after
from farandole.models.values import Heard, Reply, Request

#: Models from before structured output (https://platform.claude.com/docs/en/build-with-claude/structured-outputs).
_UNSTRUCTURED = re.compile(r"claude-(?:instant|2|3|(?:opus|sonnet|haiku)-4-(?:[01](?!\d)|\d{8}))|claude-v")

#: Seconds for a connection. The rest of a call has its own bound.
_CONNECT = 10.0

#: Calls under way in one pool of connections. For each call a pool looks through all of its connections: two thousand in one
#: cost 11 ms of computing a call, fifty cost about 1 ms.
_CALLS_A_POOL = 50

#: Bytes. No model's reply is as long.
_LONGEST = 64 << 20

_TOO_LONG = re.compile(r"(prompt|input) is too long|exceeds? (the )?context limit")


class Claude:
    """Implements `farandole.models.values.Model`. One a worker, on its event loop; thousands of calls at once."""

    def __init__(self, api_key: str, base_url: str) -> None:
        self._api_key, self._base_url = api_key, base_url
        self._certificates = httpx2.create_ssl_context()
        self._lines: list[_Line] = []

    async def close(self) -> None:
        """Close its connections."""
        for line in self._lines:
            await line.client.close()

    def structured(self, model: str, schema: dict[str, Any]) -> Mapping[str, Any] | None:
        """The schema as the API takes it; None where the model has no structured output."""
        if _UNSTRUCTURED.match(model):
            return None
        return _transformed(json.dumps(schema, sort_keys=True))

    async def send(self, request: Request, key: str) -> tuple[Reply, Heard]:
        """One call. Raises a ModelError, whatever happens on the wire."""
        call = self._streamed if request.stream else self._whole
        line = self._free_line()
        line.calls += 1
        try:
            async with asyncio.timeout(request.timeout):
                return await call(line.client, request, key)
        except TimeoutError as error:
            raise TimedOut(f"{request.model}: no whole reply within {request.timeout:g} s").about() from error
        except (anthropic.APITimeoutError, httpx2.TimeoutException) as error:
            failure: ModelError = TimedOut(f"{request.model}: {_words(error)}")
            failure.unsent = _is_unsent(error)
            raise failure from error
        except anthropic.APIStatusError as error:
            raise refused(error.status_code, error.body, error.response.headers) from error
        except (anthropic.APIConnectionError, httpx2.HTTPError) as error:
            raise _connection(error) from error
        except (anthropic.AnthropicError, httpx2.StreamError, ValueError, RecursionError) as error:  # none of the API's
            failure = ServerFailed(f"{request.model}: {_words(error)}")
            failure.may_cost = True
            raise failure from error
        finally:
            line.calls -= 1

    def _free_line(self) -> _Line:
        """The first client with room, so that few calls share few connections, which stay open."""
        for line in self._lines:
            if line.calls < _CALLS_A_POOL:
                return line
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=_CALLS_A_POOL, keepalive_expiry=30)
        client = anthropic.AsyncAnthropic(
            api_key=self._api_key,
            base_url=self._base_url,
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(limits=limits, verify=self._certificates),
        )
        self._lines.append(_Line(client))
        return self._lines[-1]

    async def _whole(self, client: anthropic.AsyncAnthropic, request: Request, key: str) -> tuple[Reply, Heard]:
        body = bytearray()
        async with _opened(client, request, key) as response:
            heard = _heard(response)
            try:
                async for chunk in response.iter_bytes():
                    body += chunk
                    _bounded(len(body))
            except httpx2.TimeoutException:
                raise
            except httpx2.TransportError as error:
                raise _cut(request, heard) from error
        return reply(json.loads(body), heard), heard

    async def _streamed(self, client: anthropic.AsyncAnthropic, request: Request, key: str) -> tuple[Reply, Heard]:
        assembly, size = Assembly(), 0
        async with _opened(client, request, key) as response:
            heard = _heard(response)
            try:
                async for chunk in response.iter_bytes():
                    size += len(chunk)
                    _bounded(size)
                    assembly.feed(chunk)
                return reply(assembly.message(), heard), heard
            except ErrorEvent as error:
                failure = refused(500, error.body, heard.headers)  # its response began with 200
                failure.may_cost = True  # the reply had begun
                raise failure from error
            except httpx2.TimeoutException:
                raise
            except (httpx2.TransportError, ValueError) as error:
                raise _cut(request, heard) from error


@dataclass(slots=True)
class _Line:
    """A client with its own pool of connections."""

    client: anthropic.AsyncAnthropic
    calls: int = 0  #: under way


def _opened(client: anthropic.AsyncAnthropic, request: Request, key: str) -> Any:
    """The response to a request, its body unread: it is read here, as it is, for the client's own reading builds thousands
    of objects that nobody asked for, and fails in many ways on bodies that are none."""
    body = {"model": request.model, "max_tokens": request.max_tokens, **request.body}
    return client.messages.with_streaming_response.create(
        model=request.model,
        max_tokens=request.max_tokens,
        messages=[],  # the body below holds them
        extra_body={**body, "stream": True} if request.stream else body,
        extra_headers={"Idempotency-Key": key},
        timeout=httpx2.Timeout(request.timeout, connect=min(_CONNECT, request.timeout)),
    )


def _heard(response: Any) -> Heard:
    return Heard(response.status_code, {name.lower(): value for name, value in response.headers.items()})


def _bounded(size: int) -> None:
    if size > _LONGEST:
        raise ValueError(f"the reply is longer than {_LONGEST:,} bytes")


def refused(status: int, body: object, headers: Mapping[str, str]) -> ModelError:
    """The error that a status and an error's body stand for."""
    error = body.get("error") if isinstance(body, Mapping) else None
    found = error if isinstance(error, Mapping) else {}
    kind, message = str(found.get("type", "")), str(found.get("message", ""))[:500] or f"status {status}"
    heard = Heard(status, dict(headers.items()))
    return _kind(status, kind, message, heard).about(heard=heard, request_id=heard.request_id)


def _kind(status: int, kind: str, message: str, heard: Heard) -> ModelError:
    text = f"{message} ({status} {kind})".replace(" )", ")")
    if status == 429 or kind == "rate_limit_error":
        return RateLimited(text, after=retry_after(heard.headers))
    if status == 529 or kind == "overloaded_error":
        return Overloaded(text, after=retry_after(heard.headers))
    if status == 402 or kind == "billing_error" or "credit balance" in message:
        return NoCredit(text)
    if status == 404:
        return NotAllowed(f"{text}; expected a model's id, or a name in [tool.farandole.models]")
    if status in (401, 403):
        return NotAllowed(text)
    if status == 408 or kind == "timeout_error":
        return TimedOut(text)
    if status == 413 or (status == 400 and _TOO_LONG.search(message)):
        return ContextTooLong(text)
    if 400 <= status < 500 and status != 409:
        return BadRequest(text)
    return ServerFailed(text)


def _cut(request: Request, heard: Heard) -> ModelError:
    """What was computed is charged, but the end of it was not heard: as much as it may be."""
    return StreamCut(f"{request.model}: the stream broke off").about(heard=heard, request_id=heard.request_id)


def _connection(error: Exception) -> ModelError:
    failure = ConnectionFailed(_words(error.__cause__ or error))
    failure.unsent = _is_unsent(error)
    return failure


def _is_unsent(error: Exception) -> bool:
    """Whether nothing was sent, for there was no connection."""
    cause = error.__cause__ or error
    return isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]


@lru_cache(maxsize=500)
def _transformed(schema: str) -> dict[str, Any]:
    return anthropic.transform_schema(json.loads(schema))
