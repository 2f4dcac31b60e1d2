"""Claude through Anthropic's own client, whose retries are off: one call is one call. The only module that imports it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import anthropic
import httpx2

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
from farandole.models.values import Heard, Reply, Request, Usage

#: Models from before structured output (https://platform.claude.com/docs/en/build-with-claude/structured-outputs).
_UNSTRUCTURED = re.compile(r"claude-(?:instant|2|3|(?:opus|sonnet|haiku)-4-(?:[01](?!\d)|\d{8}))|claude-v")

#: Seconds for a connection. The rest of a call has its own bound.
_CONNECT = 10.0


class Claude:
    """Implements `farandole.models.values.Model`. One a worker, on its event loop; thousands of calls at once."""

    def __init__(self, api_key: str, base_url: str) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=1000, keepalive_expiry=30)
        self._client = anthropic.AsyncAnthropic(
            api_key=api_key,
            base_url=base_url,
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(limits=limits),
        )

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()

    def structured(self, model: str, schema: dict[str, Any]) -> Mapping[str, Any] | None:
        """The schema as the API takes it; None where the model has no structured output."""
        if _UNSTRUCTURED.match(model):
            return None
        return _transformed(json.dumps(schema, sort_keys=True))

    async def send(self, request: Request, key: str) -> tuple[Reply, Heard]:
        """One call. Raises a ModelError, whatever happens on the wire."""
        call = self._streamed if request.stream else self._whole
        try:
            async with asyncio.timeout(request.timeout):
                return await call(request, self._options(request, key))
        except TimeoutError as error:
            raise TimedOut(f"{request.model}: no whole reply within {request.timeout:g} s").about() from error
        except anthropic.APITimeoutError as error:
            raise TimedOut(f"{request.model}: {_words(error)}") from error
        except anthropic.APIStatusError as error:
            raise refused(error.status_code, error.body, error.response.headers) from error
        except (anthropic.APIConnectionError, httpx2.HTTPError) as error:
            raise _connection(error) from error
        except (anthropic.AnthropicError, ValueError) as error:  # a body that is none of the API's
            failure = ServerFailed(f"{request.model}: {_words(error)}")
            failure.may_cost = True
            raise failure from error

    def _options(self, request: Request, key: str) -> dict[str, Any]:
        timeout = httpx2.Timeout(request.timeout, connect=min(_CONNECT, request.timeout))
        return {**request.body, "extra_headers": {"Idempotency-Key": key}, "timeout": timeout}

    async def _whole(self, request: Request, options: dict[str, Any]) -> tuple[Reply, Heard]:
        raw = await self._client.messages.with_raw_response.create(**options)
        heard = Heard(raw.status_code, dict(raw.headers.items()))
        return _reply(json.loads(raw.http_response.content), heard), heard

    async def _streamed(self, request: Request, options: dict[str, Any]) -> tuple[Reply, Heard]:
        ended = False
        async with self._client.messages.stream(**options) as stream:
            heard = Heard(stream.response.status_code, dict(stream.response.headers.items()))
            try:
                async for event in stream:
                    ended = ended or event.type == "message_stop"
            except anthropic.APIStatusError as error:
                failure = refused(_status(error), error.body, heard.headers)
                failure.may_cost = True  # the reply had begun
                raise failure from error
            except (anthropic.APIConnectionError, httpx2.HTTPError, ValueError) as error:
                raise _cut(request, heard) from error
            if not ended:
                raise _cut(request, heard)
            return _reply(stream.current_message_snapshot.model_dump(mode="json"), heard), heard


def refused(status: int, body: object, headers: Mapping[str, str]) -> ModelError:
    """The error that a status and an error's body stand for."""
    error = body.get("error") if isinstance(body, Mapping) else None
    found = error if isinstance(error, Mapping) else {}
    kind, message = str(found.get("type", "")), str(found.get("message", ""))[:500] or f"status {status}"
    heard = Heard(status, dict(headers.items()))
    return _kind(status, kind, message, heard).about(heard=heard, request_id=_request_id(heard))


def _kind(status: int, kind: str, message: str, heard: Heard) -> ModelError:
    text = f"{message} ({status} {kind})".replace(" )", ")")
    if status == 429 or kind == "rate_limit_error":
        return RateLimited(text, after=retry_after(heard.headers))
    if status == 529 or kind == "overloaded_error":
        return Overloaded(text, after=retry_after(heard.headers))
    if status == 402 or kind == "billing_error" or "credit balance" in message:
        return NoCredit(text)
    if status in (401, 403, 404):
        return NotAllowed(text)
    if status == 408 or kind == "timeout_error":
        return TimedOut(text)
    if status == 413 or (status == 400 and "prompt is too long" in message):
        return ContextTooLong(text)
    if 400 <= status < 500 and status != 409:
        return BadRequest(text)
    return ServerFailed(text)


def _reply(found: Any, heard: Heard) -> Reply:
    """A whole message, as it came. Raises ValueError when it is none."""
    if not isinstance(found, dict) or found.get("type") != "message" or not isinstance(found.get("content"), list):
        raise ValueError("the reply is no message of the Messages API")
    blocks = [block for block in found["content"] if isinstance(block, dict)]
    model, reason = str(found.get("model", "")), found.get("stop_reason")
    return Reply(model, blocks, reason and str(reason), _usage(found.get("usage")), _request_id(heard))


def _usage(found: Any) -> Usage:
    if not isinstance(found, dict):
        raise ValueError("the reply has no usage")
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [found.get(name) or 0 for name in names]
    if not all(isinstance(count, int) and 0 <= count < 1 << 40 for count in counts):
        raise ValueError("the reply's usage are no counts")
    return Usage(*counts)


def _cut(request: Request, heard: Heard) -> ModelError:
    """What was computed is charged, but the end of it was not heard: as much as it may be."""
    return StreamCut(f"{request.model}: the stream broke off").about(heard=heard, request_id=_request_id(heard))


def _connection(error: Exception) -> ModelError:
    cause = error.__cause__ or error
    failure = ConnectionFailed(_words(cause))
    # Nothing was sent where there was no connection.
    failure.unsent = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
    return failure


def _status(error: anthropic.APIStatusError) -> int:
    """Of an error event in a stream: its response began with 200."""
    return error.status_code if error.status_code >= 400 else 500


def _request_id(heard: Heard) -> str | None:
    return heard.headers.get("request-id")


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]


@lru_cache(maxsize=500)
def _transformed(schema: str) -> dict[str, Any]:
    return anthropic.transform_schema(json.loads(schema))
