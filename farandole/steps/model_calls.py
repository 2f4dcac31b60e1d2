"""The model calls of one step: each reserved before it is made and booked after it, and none made twice."""

from __future__ import annotations

import json
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from hashlib import sha256
from types import TracebackType
from typing import Any
from uuid import uuid4

from farandole.models.allowances import allowances
from farandole.models.configured import Budgets
from farandole.models.errors import ModelError, Unpriced
from farandole.models.pace import Pace
from farandole.models.pricing import Prices
from farandole.models.values import Model, Reply, Request, Usage
from farandole.steps import results
from farandole.steps.claims import Call, Finish, Money, Step
from farandole.steps.effects import Begun, Effects, failed

#: Bytes of the replies of one step that did not do.
_LONGEST_TRAIL = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Connected:
    """What it takes to call models; one a worker."""

    model: Model
    pace: Pace
    prices: Prices
    budgets: Budgets


class TakenOver(BaseException):
    """Another owner has the step; the ask begins anew, and finds what became of it. No error: see `Replayed`."""


class ModelCalls:
    """Implements `farandole.models.values.Calls`. Used once, in `async with`; `begun` is there from the first call on."""

    def __init__(self, effects: Effects, connected: Connected, step: Step, owner: str) -> None:
        self._effects = effects
        self._connected = connected
        self._step = step
        self._owner = owner
        self._trail: list[Any] = []  #: of replies that did not do
        self._replay: list[Any] = []  #: those of it that are still to be met again
        self._pending: tuple[Call, dict[str, Any] | None] | None = None  #: ended and not written yet
        self._stack = ExitStack()
        self._begun: Begun | None = None

    async def __aenter__(self) -> ModelCalls:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    async def call(self, request: Request) -> Reply:
        """The reply to the next request of the step. Raises a ModelError, BudgetSpent, or what `Effects.begin` raises."""
        if self._pending:
            await self._write_pending()
        money = self._money(request)
        begun, first = self._begun, self._begun is None
        if begun is None:
            begun = await self._begin(money)
        if self._replay and (reply := self._met_again(request)):
            return reply
        if not first:
            await self._effects.begin(self._step, owner=self._owner, money=money)
        return await self._call(request, money, begun.key)

    async def _begin(self, money: Money) -> Begun:
        self._begun = begun = await self._effects.begin(self._step, owner=self._owner, money=money)
        self._trail, self._replay = list(begun.trail), list(begun.trail)
        self._stack.enter_context(self._effects.leased(begun.claim))
        return begun

    def _met_again(self, request: Request) -> Reply | None:
        """The reply that was had before a crash; None where the prompt is another one now, which makes the rest worthless."""
        found = self._replay.pop(0)
        if found["request"] == _mark(request):
            return Reply.from_json(found["reply"])
        del self._trail[len(self._trail) - len(self._replay) - 1 :]
        self._replay = []
        return None

    async def _call(self, request: Request, money: Money, key: str) -> Reply:
        connected = self._connected
        async with AsyncExitStack() as stack:
            with self._effects.time.stopped():
                turn = await stack.enter_async_context(connected.pace.turn(request))
            began = time.perf_counter()
            try:
                reply, heard = await connected.model.send(request, key)
            except ModelError as error:
                self._pending = self._ended(request, money, began, error.outcome, error.usage, error=error), None
                turn.failed(error)
                raise
            except BaseException:  # cancelled, or what nobody thought of: it may have been charged
                self._pending = self._ended(request, money, began, "abandoned", None), None
                raise
            call = self._ended(request, money, began, "answered", reply.usage, reply=reply)
            self._pending = call, {"request": _mark(request), "reply": reply.to_json()}
            turn.answered(reply.usage, heard)
            return reply

    def _ended(
        self,
        request: Request,
        money: Money,
        began: float,
        outcome: str,
        usage: Usage | None,
        *,
        reply: Reply | None = None,
        error: ModelError | None = None,
    ) -> Call:
        if usage is not None:
            cost = self._connected.prices.cost(request.model, usage)
        else:  # what the API did not tell: nothing where it has refused, else as much as it may be
            cost = money.ceiling if error is None or (error.may_cost and not error.unsent) else 0
        told = reply or error
        return Call(
            money.call_id,
            request.model,
            usage,
            cost,
            round((time.perf_counter() - began) * 1000),
            reply.stop_reason if reply else None,
            outcome,
            told.request_id if told else None,
        )

    def _money(self, request: Request) -> Money:
        """Raises Unpriced for a model without a price under a budget."""
        connected, step = self._connected, self._step
        rows = allowances(connected.budgets, trace_id=step.trace_id, agent=step.agent, tenant=step.tenant)
        ceiling = connected.prices.ceiling(request.model, request.input_bytes, request.max_tokens)
        if rows and ceiling is None:
            raise Unpriced(request.model)
        return Money(str(uuid4()), request.model, ceiling, rows)

    async def _write_pending(self) -> None:
        """Before the next call: what the last one cost, and its reply, which did not do."""
        finish = self._finish("leased")
        if not await self._effects.written(self._effects.finish(finish)):
            raise TakenOver

    def _finish(self, state: Any, **given: Any) -> Finish:
        call, entry = self._pending or (None, None)
        whole = [*self._trail, entry] if entry else self._trail
        trail = json.dumps(whole, ensure_ascii=False) if whole and state != "done" else None
        if trail and len(trail.encode("utf-8", "surrogatepass")) > _LONGEST_TRAIL:
            if state == "leased":
                self._trail, self._pending = [], (call, None) if call else None  # `ended` books it
                raise results.NotKept(
                    f"{self._step.name}: the replies of this step have {len(trail):,} characters together"
                )
            whole, trail = [], None
        self._trail, self._pending = whole, None
        return Finish(self._step, self._owner, state, trail=trail, call=call, **given)

    async def done(self, text: str) -> bool:
        """Record the step's result, JSON, together with its last call; whether it counts."""
        if self._begun is None:
            return True
        return await self._effects.written(self._effects.finish(self._finish("done", result=text)))

    async def ended(self, error: BaseException) -> None:
        """Record that the step has failed, or was cancelled."""
        if self._begun is None:
            return
        how = failed(self._begun, error)
        if how.failure is not None:  # for good: the next run begins with an empty trail
            self._trail, entry = [], self._pending
            self._pending = (entry[0], None) if entry else None
        finish = self._finish("failed", error=how.error, failure=how.failure, failed_run=how.failed_run)
        writing = self._effects.finish(finish)
        if isinstance(error, Exception):
            await self._effects.written(writing)


def _mark(request: Request) -> str:
    """Tells whether a request is the same one as before a crash."""
    body = json.dumps([request.model, request.body], sort_keys=True, default=str)
    return sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]
