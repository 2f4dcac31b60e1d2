"""What the fake server does with a request: plain values, to be scripted or returned by rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole reply. Without `content` it is the smallest object that fits the request's schema, or the text "OK".

    `usage` names input_tokens, output_tokens, cache_read_input_tokens and cache_creation_input_tokens; what it does not
    name is worked out from the request and the reply, four bytes a token.
    """

    content: str | Mapping[str, Any] | None = None  #: text, or an object that is written as JSON
    thinking: str | None = None
    tool_use: tuple[str, Mapping[str, Any]] | None = None  #: a tool's name and its input
    stop_reason: str = "end_turn"
    usage: Mapping[str, int] = field(default_factory=dict)
    more: tuple[str, ...] = ()  #: further text blocks


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as the API words it; nothing is computed, nothing charged."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MidStream:
    """An error event after so many events of a stream; of a request without one, a failure with its status."""

    type: str = "overloaded_error"
    after: int = 3


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection is closed: before anything is sent, in the headers, or in the middle of the body."""

    where: Literal["before", "headers", "body"] = "body"  #: of a stream's body, half of its events come before


@dataclass(frozen=True, slots=True)
class Slow:
    """Seconds, then something else."""

    seconds: float
    then: Behaviour = field(default_factory=Answer)


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing more comes, until the client gives up: at once, or after so many events of a stream."""

    after: int | None = None


@dataclass(frozen=True, slots=True)
class Garbage:
    """A body that is none of the API's."""

    status: int = 502
    body: str = "<html><body>Bad gateway</body></html>"
    type: str = "text/html"


Behaviour = Answer | Failure | MidStream | Cut | Slow | Hang | Garbage


def rate_limited(retry_after: float | None = 1) -> Failure:
    """429; with the header retry-after unless it is None."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return Failure(429, "rate_limit_error", "This request would exceed your rate limit.", headers)


def overloaded() -> Failure:
    """529."""
    return Failure(529, "overloaded_error", "Overloaded")


def server_error() -> Failure:
    """500."""
    return Failure(500, "api_error", "Internal server error")


def no_credit(status: Literal[400, 402] = 400) -> Failure:
    """The account's credit is used up: 400, as the API words it mostly, or 402 with a type of its own."""
    message = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade."
    return Failure(status, "invalid_request_error" if status == 400 else "billing_error", message)


def context_too_long(tokens: int = 1_200_000, most: int = 1_000_000) -> Failure:
    """The prompt is larger than the model's context."""
    return Failure(400, "invalid_request_error", f"prompt is too long: {tokens} tokens > {most} maximum")


def request_too_large() -> Failure:
    """413: more bytes than the API takes."""
    return Failure(413, "request_too_large", "Request exceeds the maximum size")


def bad_request(message: str = "output_config.format.schema: unsupported keyword") -> Failure:
    """400, for a request that is wrong in itself."""
    return Failure(400, "invalid_request_error", message)


def html() -> Garbage:
    """502 from something before the API, as a web page."""
    return Garbage()


def cut_json() -> Garbage:
    """200, and the beginning of a message: what it says of its length is true, but it is no JSON."""
    return Garbage(200, '{"id": "msg_cut", "type": "message", "content": [{"type": "te', "application/json")


def refusal(text: str = "") -> Answer:
    """The model declines."""
    return Answer(text, stop_reason="refusal")


def truncated(text: str = '{"category": "ref') -> Answer:
    """The reply reached max_tokens."""
    return Answer(text, stop_reason="max_tokens")
