"""What a handler is given besides its event: the envelope, its agent's resource, steps that run once, and models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Generic, overload

from pydantic import ValidationError
from typing_extensions import TypeVar

from farandole.asker import OFFLINE_RULES, Asked, Asker
from farandole.envelope import Envelope
from farandole.errors import ConfigurationError, Poison
from farandole.job_now import JobNow
from farandole.models.ask import checked
from farandole.reading import Job
from farandole.steps import results
from farandole.steps.effects import Effects, IfUnknown
from farandole.steps.in_thread import once_in_thread

#: Seconds. A projector that is alive has folded an event within milliseconds; one that restarts, within these.
JOB_WITHIN = 10.0

R = TypeVar("R", default=None)
T = TypeVar("T")

__all__ = ["OFFLINE_RULES", "BlockingContext", "Context"]


class _Handed(Generic[R]):
    """What both kinds of context share."""

    def __init__(
        self,
        envelope: Envelope,
        attempt: int,
        resource: R,
        log: logging.Logger,
        answers: Mapping[type[Any], Any] | None = None,
        effects: Effects | None = None,
        asker: Asker | None = None,
        job: JobNow | None = None,
    ) -> None:
        self.envelope = envelope
        self.attempt = attempt  #: from 1
        self.resource = resource  #: what the agent's `resource=` opened
        self.log = log
        self.decided_by = OFFLINE_RULES  #: who answered the last `ask`: a model's id, or `OFFLINE_RULES`
        self._answers = answers or {}
        self._effects = effects
        self._asker = asker
        self._job = job

    def _steps(self) -> Effects:
        if self._effects is None:
            raise _cannot_wait()
        return self._effects

    def _job_now(self) -> JobNow:
        if self._job is None:
            raise _cannot_wait()
        return self._job

    def _at_once(self, asked: Asked[T]) -> T | None:
        """The answer that takes no model: of a test, or of the agent's own rules; None when a model is to be asked."""
        if asked.output in self._answers:
            return checked(_typed(asked, self._answers[asked.output]), asked.check)
        if self._asker is not None and asked.prompt is not None:
            return None
        if asked.otherwise is None:
            name = getattr(asked.output, "__name__", str(asked.output))
            raise ConfigurationError(
                f"ask({name}): no model is connected and no rules are given; set ANTHROPIC_API_KEY and a "
                "prompt, or give otherwise="
            )
        self.decided_by = OFFLINE_RULES
        return _typed(asked, asked.otherwise())

    async def _ask(self, asked: Asked[T]) -> T:
        if self._asker is None:
            raise ConfigurationError("no model is connected")
        value, self.decided_by = await self._asker.ask(self._steps(), asked)
        return value


def _cannot_wait() -> ConfigurationError:
    return ConfigurationError(
        "ctx.once, ctx.job and ctx.ask with a model wait for the database: not in a handler with inline=True or cpu, which "
        "would make all others wait; drop that option, or put the effect in the next agent"
    )


def _typed(asked: Asked[T], answer: Any) -> T:
    try:
        results.adapter(asked.output, "ask").validate_python(answer, strict=True)
    except ValidationError as error:
        name = getattr(asked.output, "__name__", str(asked.output))
        raise Poison("wrong_output", f"ask({name}): the answer is a {type(answer).__name__}") from error
    return answer  # type: ignore[no-any-return]


class Context(_Handed[R]):
    """The context of an async handler.

    `Context[Customers]` says what `ctx.resource` is; plain `Context` is for agents without one.
    """

    @overload
    async def once(
        self, name: str, function: Callable[..., Awaitable[T]], *, if_unknown: IfUnknown = ..., returns: None = None
    ) -> T: ...
    @overload
    async def once(
        self, name: str, function: Callable[..., T], *, if_unknown: IfUnknown = ..., returns: None = None
    ) -> T: ...
    @overload
    async def once(
        self, name: str, function: Callable[..., Any], *, if_unknown: IfUnknown = ..., returns: type[T]
    ) -> T: ...
    async def once(
        self, name: str, function: Callable[..., Any], *, if_unknown: IfUnknown = "repeat", returns: Any = None
    ) -> Any:
        """What `function` returns; it runs once for this event, whatever crashes, and its result is replayed afterwards.

        `function` is given the idempotency key, a text, if it takes an argument; it may be async, or plain and quick. Its
        return annotation, or `returns`, types the result: a pydantic model, a dataclass or plain values, at most 64 kB of
        JSON.

        When its worker dies between the call and its record, nobody knows whether it has happened. It then runs once more
        under the same key ("repeat"), or the event is dead-lettered until a person has looked ("hold"). What `function`
        raises fails the attempt; `Retry`, `Reject` and `Fail` say as well that it has not happened.

        Raises StepNameTaken for a name that this handling has used. See docs/effects.md.
        """
        return await self._steps().once(name, function, returns, if_unknown)

    async def ask(
        self,
        output: type[T],
        prompt: str | None = None,
        *,
        model: str | None = None,
        check: Callable[[T], object] | None = None,
        fallback: Sequence[str] = (),
        otherwise: Callable[[], T] | None = None,
        name: str | None = None,
        max_tokens: int = 1024,
        tools: Sequence[Callable[..., Any]] = (),
        stream: bool = False,
        **values: Any,
    ) -> T:
        """A decision of type `output`, by a model: a step named `name`, by default like `output`.

        Args:
            prompt: a file in the folder `prompts` beside the agent's; `values` fill its placeholders.
            model: a name in [tool.farandole.models], or a model's id.
            check: raises ValueError when a model's answer breaks a rule of the agent; the model may repair that once. The
                agent's own rules are not checked by it.
            fallback: models that are asked when `model` refuses, fails, or has no valid answer.
            otherwise: the agent's own rules: they answer when no model is connected (no ANTHROPIC_API_KEY), and when no
                model has a valid answer.
            max_tokens: of a reply; one that is cut off is asked for once more, with twice as much.
            tools: functions that the model may call.

        In tests, `deliver(…, answers={Output: …})` answers instead. Raises the errors of farandole.models.errors.
        """
        asked = Asked(
            output, prompt, model, check, tuple(fallback), otherwise, name, max_tokens, tuple(tools), stream, values
        )
        answer = self._at_once(asked)
        return await self._ask(asked) if answer is None else answer

    async def job(self, timeout: float = JOB_WITHIN) -> Job:  # noqa: ASYNC109  it has an error of its own
        """The job as it is folded, at least up to the event in hand: where it stands, and what each stage said last (`data`).

        It waits for the projector, at most `timeout` seconds, which are not the attempt's; then it raises ProjectionBehind:
        the event is put off and comes back, without an attempt counted. Meanwhile other events of the job may be folded, so
        two attempts may see different jobs: what must be the same each time belongs into a step.

        In tests, `deliver(…, job=Job(…))` gives it.
        """
        return await self._job_now().read(timeout)


class BlockingContext(_Handed[R]):
    """The context of a plain (not async) handler; the same names, without await. In the handler's own thread."""

    def __init__(self, *handed: Any) -> None:
        super().__init__(*handed)
        self._loop = asyncio.get_running_loop() if self._effects or self._job else None

    def once(
        self, name: str, function: Callable[..., T], *, if_unknown: IfUnknown = "repeat", returns: type[T] | None = None
    ) -> T:
        """As `Context.once`, of a plain function; it runs in this thread and may block."""
        return once_in_thread(self._steps(), self._await, name, function, returns, if_unknown)  # type: ignore[no-any-return]

    def ask(
        self,
        output: type[T],
        prompt: str | None = None,
        *,
        model: str | None = None,
        check: Callable[[T], object] | None = None,
        fallback: Sequence[str] = (),
        otherwise: Callable[[], T] | None = None,
        name: str | None = None,
        max_tokens: int = 1024,
        tools: Sequence[Callable[..., Any]] = (),
        stream: bool = False,
        **values: Any,
    ) -> T:
        """As `Context.ask`."""
        asked = Asked(
            output, prompt, model, check, tuple(fallback), otherwise, name, max_tokens, tuple(tools), stream, values
        )
        answer = self._at_once(asked)
        if answer is None:
            self._steps()
            return self._await(self._ask(asked))
        return answer

    def job(self, timeout: float = JOB_WITHIN) -> Job:
        """As `Context.job`."""
        return self._await(self._job_now().read(timeout))

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            raise TypeError("no event loop beside this thread")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
