"""Decisions by models, each a step: asked once, recorded with who decided, replayed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from farandole.steps.effects import Effects

T = TypeVar("T")

#: What `decided_by` says when no model answered: the rules given as `otherwise=` did.
OFFLINE_RULES = "offline rules"


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """What a handler asks; see `Context.ask`."""

    output: type[T]
    prompt: str | None
    model: str | None
    check: Callable[[T], object] | None
    fallback: tuple[str, ...]
    otherwise: Callable[[], T] | None
    name: str | None
    max_tokens: int
    tools: tuple[Callable[..., Any], ...]
    stream: bool
    values: Mapping[str, Any]


class Asker:
    """Asks models for one agent."""

    async def ask(self, effects: Effects, asked: Asked[T]) -> tuple[T, str]:
        """The answer and who gave it."""
        raise NotImplementedError
