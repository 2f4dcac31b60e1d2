"""One decision by models: asked, read, repaired once, enlarged once, then the next model, then the agent's own rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from farandole.errors import Retry
from farandole.models.errors import FINAL, ContextTooLong, InvalidOutput, ModelError, Refused, Truncated
from farandole.models.shape import Shape
from farandole.models.tools import Tools
from farandole.models.values import Calls, Reply, Request

T = TypeVar("T")

#: Replies of one model that call tools, before it must decide.
_ROUNDS = 10

_REPAIR = (
    "That is not a valid answer: {wrong}. Answer again, with one JSON object that fits the schema and nothing else."
)
_SCHEMA = "Answer with one JSON object that fits this JSON schema, and nothing else:\n{schema}"


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """What is asked of one model after another."""

    shape: Shape[T]
    system: str
    user: str
    models: Sequence[str]  #: ids; the first one is asked first
    structured: Callable[
        [str, dict[str, Any]], Mapping[str, Any] | None
    ]  #: the schema as a model's API takes it, if it does
    check: Callable[[T], object] | None = None
    otherwise: Callable[[], T] | None = None
    max_tokens: int = 1024
    tools: Tools = field(default_factory=lambda: Tools(()))
    stream: bool = False
    timeout: float = 600.0


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A decision, and the model that made it; None: the agent's own rules did."""

    value: T
    model: str | None


async def answer(question: Question[T], calls: Calls) -> Answer[T]:
    """The answer, the same for the same replies. Raises a ModelError when no model has one and there are no rules; where one
    of them may have one later, that one's error, and the rules are not asked."""
    passing: Exception | None = None
    final: Exception | None = None
    for model in question.models:
        try:
            return Answer(await _answer(question, model, calls), model)
        except tuple(FINAL.values()) as error:
            final = error
        except ModelError as error:
            if not isinstance(error, Retry):
                raise
            passing = error
    if passing is not None:
        raise passing
    if question.otherwise is not None:
        return Answer(question.otherwise(), None)
    raise final or InvalidOutput("no model was asked")


async def _answer(question: Question[T], model: str, calls: Calls) -> T:
    messages: list[dict[str, Any]] = [{"role": "user", "content": question.user}]
    most, enlarged, repaired, rounds = question.max_tokens, False, False, 0
    while True:
        reply = await calls.call(_request(question, model, messages, most))
        try:
            if reply.stop_reason == "tool_use" and question.tools:
                rounds += 1
                if rounds > _ROUNDS:
                    raise InvalidOutput(f"{_ROUNDS} rounds of tools and no answer")
                results = await question.tools.results(reply.content)
                messages = [*messages, _said(reply), {"role": "user", "content": results}]
                continue
            return _read(question, reply)
        except Truncated as error:
            if enlarged:
                raise error.about(model=model) from error.__cause__
            enlarged, most = True, 2 * most
        except InvalidOutput as error:
            if repaired:
                raise error.about(model=model) from error.__cause__
            repaired = True
            messages = [*messages, *_repair(reply, str(error))]


def _request(question: Question[Any], model: str, messages: list[dict[str, Any]], most: int) -> Request:
    schema = question.structured(model, question.shape.schema)
    system = question.system if schema else f"{question.system}\n\n{_SCHEMA.format(schema=question.shape.schema)}"
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": most,
        # The same for every event: the API keeps what it has read of it, and charges less the next time.
        "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
        "messages": messages,
    }
    if schema:
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    if question.tools:
        body["tools"] = question.tools.described()
    return Request(model, most, body, question.stream, question.timeout)


def _read(question: Question[T], reply: Reply) -> T:
    match reply.stop_reason:
        case "max_tokens":  # also when it parses: what was cut off may have been the important part
            raise Truncated("the reply was cut off at max_tokens")
        case "refusal":
            raise Refused(_text(reply)[:500] or "the model declined")
        case "model_context_window_exceeded":
            raise ContextTooLong("the model's context was full before the reply ended")
        case "end_turn" | "stop_sequence":
            pass
        case other:
            raise InvalidOutput(f"the reply ended with stop_reason {other!r}")
    value = question.shape.read(_text(reply))
    return checked(value, question.check)


def checked(value: T, check: Callable[[T], object] | None) -> T:
    """`value`, when it breaks no rule of the agent. Raises InvalidOutput, in the rule's words."""
    if check:
        try:
            check(value)
        except ValueError as error:
            raise InvalidOutput(str(error)) from error
    return value


def _text(reply: Reply) -> str:
    return "".join(str(block.get("text", "")) for block in reply.content if block.get("type") == "text")


def _said(reply: Reply) -> dict[str, Any]:
    """The model's turn, as it must be sent back."""
    return {"role": "assistant", "content": list(reply.content)}


def _repair(reply: Reply, wrong: str) -> list[dict[str, Any]]:
    asked = {"role": "user", "content": _REPAIR.format(wrong=wrong[:2000])}
    if not _text(reply).strip():  # the API takes no empty turn
        return [asked]
    return [{"role": "assistant", "content": _text(reply)}, asked]
