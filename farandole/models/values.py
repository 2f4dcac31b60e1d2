"""What goes to a model and what comes back, as plain values: the rest of farandole knows no vendor's classes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

_UNSENDABLE = re.compile("[\\0\\ud800-\\udfff]")


def sendable(found: Any) -> Any:
    """JSON without NUL and halves of surrogate pairs, which can neither be sent nor kept: U+FFFD stands there."""
    if isinstance(found, str):
        return _UNSENDABLE.sub("\ufffd", found)
    if isinstance(found, dict):
        return {sendable(name): sendable(value) for name, value in found.items()}
    return [sendable(value) for value in found] if isinstance(found, list) else found


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the API reports them: the four do not overlap."""

    input_tokens: int = 0  #: neither read from the cache nor written to it
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One call of the Messages API; `body` is what is sent, but for `stream`."""

    model: str
    max_tokens: int
    body: Mapping[str, Any]
    stream: bool = False
    timeout: float = 600.0  #: seconds for the whole call

    @property
    def input_bytes(self) -> int:
        """UTF-8 bytes of the whole request: no more tokens than this can be in it."""
        return len(json.dumps(self.body, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply. `content` are the blocks of the Messages API, as JSON objects."""

    model: str
    content: Sequence[Mapping[str, Any]]
    stop_reason: str | None
    usage: Usage
    request_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """For the ledger."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Reply:
        """What `to_json` gave."""
        return cls(**{**found, "usage": Usage(**found["usage"])})


@dataclass(frozen=True, slots=True)
class Heard:
    """What a response said beside its body: its status and headers (names in lower case)."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def request_id(self) -> str | None:
        """The API's name of the call."""
        return self.headers.get("request-id")


class Model(Protocol):
    """Makes calls; `farandole.models.claude.Claude` is the one for production."""

    async def send(self, request: Request, key: str) -> tuple[Reply, Heard]:
        """One call, made once, under an idempotency key. Raises a ModelError of `farandole.models.errors`."""
        ...

    def structured(self, model: str, schema: dict[str, Any]) -> Mapping[str, Any] | None:
        """A JSON schema as the API takes it for structured output; None where the model has none."""
        ...

    async def close(self) -> None:
        """No more calls."""


class Calls(Protocol):
    """The calls of one step, one after another. A call that was made before a crash is not made again: its reply comes
    from the ledger."""

    async def call(self, request: Request) -> Reply:
        """The reply to the next request: limits kept, money reserved and booked. Raises a ModelError."""
        ...
