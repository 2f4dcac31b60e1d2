"""The steps of one attempt at a handling: begun, replayed or waited for, and their ends recorded."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

from farandole.attempt import AttemptTime
from farandole.error_text import error_text
from farandole.errors import ConfigurationError, Retry
from farandole.steps import results
from farandole.steps.claims import (
    Answer,
    Claim,
    Done,
    FailedForGood,
    Finish,
    Granted,
    Held,
    Leased,
    Money,
    OverBudget,
    Step,
)
from farandole.steps.failures import OutcomeUnknown, StepNameTaken, TooManySteps, describe, rebuilt
from farandole.steps.spent import BudgetSpent

T = TypeVar("T")

IfUnknown = Literal["repeat", "hold"]

#: Steps of one handling.
MOST = 1_000

#: Characters of a step's name.
_NAME = 100

#: Seconds between two looks at a step that another owner is at: the first, and the longest.
_LOOK, _LOOKS = 0.05, 1.0


class Steps(Protocol):
    """Where steps are kept; `farandole.steps.ledger.Ledger` is the one for production."""

    def owner(self) -> str: ...

    async def begin(self, claim: Claim) -> Answer: ...

    def finish(self, end: Finish) -> Awaitable[bool]: ...

    def leased(self, claim: Claim) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that is to run now, here."""

    claim: Claim
    key: str  #: the idempotency key
    trail: tuple[Any, ...] = ()


class Replayed(BaseException):
    """A step has its result already. No error: it passes through what a user's code catches, up to whoever asked."""

    def __init__(self, text: str | None, error: str | None) -> None:
        super().__init__("replayed")
        self.text, self.error = text, error

    def value(self, kind: Any, where: str) -> Any:
        """The recorded result; raises NotKept where it could not be recorded."""
        if self.text is None:
            raise results.NotKept(self.error or f"{where}: no result was kept")
        return results.decode(kind, self.text, where)


class Effects:
    """Made for each attempt. Names of steps are used once.

    Args:
        fields: the envelope of the event in hand.
        time: of this attempt; it stands still while another owner is waited for.
    """

    def __init__(self, steps: Steps, agent: str, fields: Mapping[str, Any], time: AttemptTime) -> None:
        self._steps = steps
        self._agent = agent
        self._fields = fields
        self._names: set[str] = set()
        self.time = time

    async def once(self, name: str, function: Callable[..., Any], kind: Any, if_unknown: IfUnknown) -> Any:
        """What `function` returns, or what it returned the first time. It may be async or plain, and is given the key if
        it takes an argument."""
        step, where = self.step(name), self.where(name)
        kind = results.result_type(function, where) if kind is None else kind
        results.adapter(kind, where)  # before anything is called
        while True:
            try:
                begun = await self.begin(step, if_unknown)
            except Replayed as replayed:
                return replayed.value(kind, where)
            value = await self.run(begun, partial(_call, function, begun.key))
            recorded = await self.done(begun, kind, value)
            if recorded is not None:
                return results.decode(kind, recorded, where)

    def step(self, name: str) -> Step:
        """The step of that name; StepNameTaken when this attempt has it already."""
        if (
            not isinstance(name, str)
            or not 0 < len(name) <= _NAME
            or not name.isprintable()
            or name.startswith("wake.")
        ):
            raise ConfigurationError(
                f"{self.where(name)}: a step's name is 1 to {_NAME} printable characters and does not begin with 'wake.'"
            )
        if name in self._names:
            raise StepNameTaken(name)
        if len(self._names) >= MOST:
            raise TooManySteps(MOST)
        self._names.add(name)
        fields = self._fields
        return Step(fields["event_id"], self._agent, name, fields["trace_id"], fields["tenant"])

    def where(self, name: str) -> str:
        """For errors."""
        return f"agent {self._agent}, step {name!r}"

    async def begin(
        self, step: Step, if_unknown: IfUnknown = "repeat", owner: str = "", money: Money | None = None
    ) -> Begun:
        """Claim it. Raises Replayed when it has its result, what it raised when it failed for good in this run,
        OutcomeUnknown when a person must decide, BudgetSpent; waits while another owner is at it."""
        claim = Claim(step, owner or self._steps.owner(), self._fields["run"], if_unknown == "hold", money)
        pause = _LOOK
        waited = 0.0
        while True:
            with self.time.stopped():  # an outage of the ledger is no fault of the attempt
                answer = await self._steps.begin(claim)
            match answer:
                case Granted(generation, trail):
                    return Begun(claim, step.key(generation), trail)
                case Done(result, error):
                    raise Replayed(result, error)
                case FailedForGood(failure):
                    raise rebuilt(failure)
                case Held(error):
                    raise OutcomeUnknown(step.name, error)
                case OverBudget() as over:
                    raise BudgetSpent(over)
                case Leased():
                    # For as long as an attempt may take. An owner that hangs for longer must not hang this one, too.
                    with self.time.stopped() if waited < self.time.seconds else nullcontext():
                        await asyncio.sleep(pause)
                    waited += pause
                    pause = min(pause * 1.5, _LOOKS)

    def leased(self, claim: Claim) -> AbstractContextManager[None]:
        """Keep the lease of a granted claim for the block."""
        return self._steps.leased(claim)

    def owner(self) -> str:
        """A name for the owner of a lease."""
        return self._steps.owner()

    async def run(self, begun: Begun, call: Callable[[], Awaitable[T]]) -> T:
        """What `call` returns, under the lease; how it fails is recorded."""
        with self._steps.leased(begun.claim):
            try:
                return await call()
            except BaseException as error:
                ended = self.finish(failed(begun, error))
                if isinstance(error, Exception):
                    await self.written(ended)
                raise

    async def done(self, begun: Begun, kind: Any, value: Any) -> str | None:
        """Record the result, and return it as it was recorded; None when somebody has taken the step over meanwhile, whose
        result counts. Raises NotKept when it cannot be recorded, which is recorded."""
        where = self.where(begun.claim.step.name)
        try:
            text = results.encode(kind, value, where)
        except results.NotKept as failure:
            await self.written(self.finish(Finish(begun.claim.step, begun.claim.owner, "done", error=str(failure))))
            raise
        mine = await self.written(self.finish(Finish(begun.claim.step, begun.claim.owner, "done", text)))
        return text if mine else None

    def finish(self, end: Finish) -> Awaitable[bool]:
        """Record how a step ended; whether it was still its owner's. It is recorded even when nobody awaits the answer."""
        return self._steps.finish(end)

    async def written(self, ended: Awaitable[bool]) -> bool:
        """What `finish` answers; waiting for it is not the attempt's time."""
        with self.time.stopped():
            return await ended


def failed(begun: Begun, error: BaseException) -> Finish:
    """How a step ends whose call has failed, or was cancelled in the middle."""
    claim, failure, text = begun.claim, describe(error), error_text(error)
    if claim.hold and not _has_not_happened(error):
        return Finish(
            claim.step, claim.owner, "held", error=f"the call ended with {text}: nobody knows what came of it"
        )
    run = claim.run if failure is not None else None
    return Finish(claim.step, claim.owner, "failed", error=text, failure=failure, failed_run=run)


def _has_not_happened(error: BaseException) -> bool:
    """What a user's function says about its effect by what it raises; a mistake of configuration stops the agent."""
    return isinstance(error, Retry | ConfigurationError) or describe(error) is not None


async def _call(function: Callable[..., Any], key: str) -> Any:
    """The user's function, with the key if it takes an argument."""
    result = function(key) if takes_key(function) else function()
    return await result if inspect.isawaitable(result) else result


def takes_key(function: Callable[..., Any]) -> bool:
    """Whether it wants the idempotency key: its first parameter without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a builtin that tells nothing
        return True
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(one.kind in positional and one.default is one.empty for one in parameters) or any(
        one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters
    )
