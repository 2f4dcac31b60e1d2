"""Decisions by models, each a step: asked once, recorded with who decided, replayed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from farandole.errors import ConfigurationError
from farandole.models import prompts
from farandole.models.ask import Question, answer
from farandole.models.shape import shape_of
from farandole.models.tools import Tools
from farandole.steps import results
from farandole.steps.effects import Effects, Replayed
from farandole.steps.model_calls import Connected, ModelCalls, TakenOver

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


@dataclass(frozen=True, slots=True)
class Decided(Generic[T]):
    """What is recorded of an ask."""

    value: T
    decided_by: str  #: a model's id, or `OFFLINE_RULES`


class Asker:
    """Asks models for one agent.

    Args:
        prompts: the folder of its prompt files.
        names: models' ids by the names that agents call them by.
        timeout: seconds of one call at most.
    """

    def __init__(self, connected: Connected, folder: Path, names: Mapping[str, str], timeout: float) -> None:
        self._connected = connected
        self._folder = folder
        self._names = names
        self._timeout = timeout

    async def ask(self, effects: Effects, asked: Asked[T]) -> tuple[T, str]:
        """The answer and who gave it: a model's id, or `OFFLINE_RULES`."""
        question = self._question(asked)
        name: str = asked.name or getattr(asked.output, "__name__", None) or str(asked.output)
        step, where = effects.step(name), effects.where(name)
        kind = Decided[asked.output]  # type: ignore[name-defined]
        while True:
            async with ModelCalls(effects, self._connected, step, effects.owner()) as calls:
                try:
                    found = await answer(question, calls)
                    text = results.encode(kind, Decided(found.value, found.model or OFFLINE_RULES), where)
                    if not await calls.done(text):
                        continue
                    decided = results.decode(kind, text, where)
                except Replayed as replayed:
                    decided = replayed.value(kind, where)
                except TakenOver:
                    continue
                except BaseException as error:
                    await calls.ended(error)
                    raise
            return decided.value, decided.decided_by

    def _question(self, asked: Asked[T]) -> Question[T]:
        if asked.prompt is None or asked.model is None:
            raise ConfigurationError(f"ask({asked.output.__name__}): a model needs a prompt and model=")
        prompt = prompts.load(self._folder / asked.prompt)
        return Question(
            shape_of(cast(Hashable, asked.output)),
            prompt.system,
            prompt.fill(asked.values),
            [self._names.get(name, name) for name in (asked.model, *asked.fallback)],
            self._connected.model.structured,
            asked.check,
            asked.otherwise,
            asked.max_tokens,
            Tools(asked.tools),
            asked.stream,
            self._timeout,
        )
