"""One event through the handler: bounded attempts, waits, and how each error ends. Knows nothing of Kafka."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from farandole import kafka, postgres
from farandole.agent import Wiring
from farandole.asker import Asker
from farandole.attempt import AttemptTime
from farandole.context import BlockingContext, Context
from farandole.envelope import Envelope
from farandole.error_text import error_text
from farandole.errors import ConfigurationError, Fail, Poison, Reject, Stopped, Unreachable
from farandole.event import Event
from farandole.job_now import NO_JOB, JobNow, Jobs
from farandole.outage import Outage
from farandole.outcome import DeadLettered, Emitted, Failed, Outcome, Suspended
from farandole.processes import Processes
from farandole.steps.effects import Effects, Steps
from farandole.steps.spent import BudgetSpent
from farandole.threads import in_thread

log = logging.getLogger("farandole.handling")

#: Seconds. Jobs that wait for a new day do not all begin in its first moment.
_BUDGET_SPREAD = 60.0

#: Seconds. An inline handler slower than this holds up everything else in its worker.
INLINE_WARNING = 0.05


class Sleep(Protocol):
    """Waits `seconds`; raises CancelledError when the worker must leave."""

    def __call__(self, seconds: float, /) -> Awaitable[None]: ...


@dataclass(slots=True)
class Handling:
    """Runs an agent's handler on one event at a time; holds what every handling of a worker shares."""

    wiring: Wiring
    resource: Any = None
    answers: Mapping[type[Any], Any] | None = None
    sleep: Sleep = asyncio.sleep
    outage: Callable[[], Outage] = lambda: Outage("handler", 0.0)
    suspends: bool = False  #: long waits are handed back as `Suspended`; otherwise all are made in place
    chance: Callable[[], float] = random.random
    #: Whether the worker has cancelled a task, and leaves; a handler may do so by itself, which is an error of its attempt.
    abandoned: Callable[[asyncio.Task[Any]], bool] = lambda task: task.cancelling() > 0
    processes: Processes | None = None  #: of an agent with `cpu`, which runs its handler there
    steps: Steps | None = None  #: where its steps are kept
    asker: Asker | None = None  #: None: no model is connected, and the agents' own rules answer
    jobs: Jobs = NO_JOB  #: who knows how jobs stand

    async def run(self, payload: Event, envelope: Envelope, attempts_before: int = 0, first_error: str = "") -> Outcome:
        """How the event ends: the closed set of §"How an attempt ends" in DESIGN.md. Raises Stopped for a long outage.

        `attempts_before` and `first_error` are of the tries before it was put off, when it was.
        """
        attempt, outage = attempts_before + 1, self.outage()
        while True:
            try:
                return Emitted(self._outputs(await self._attempt(payload, envelope, attempt)), attempt)
            except Fail as decision:
                return self._failed(decision, attempt)
            except Reject as refusal:
                return DeadLettered("rejected", error_text(refusal), attempt)
            except Poison as poison:
                return DeadLettered(poison.cause, error_text(poison), attempt)
            except Stopped:
                raise
            except ConfigurationError as mistake:  # of the agent, not of the event: nothing is dead-lettered for it
                raise Stopped(f"agent {self.wiring.agent.name}: {mistake}") from mistake
            except BudgetSpent as spent:
                return self._over_budget(spent, attempt)
            except Exception as error:  # noqa: BLE001  whatever a handler raises has an end of its own
                if _is_outage(error):  # nobody's fault but the outage's: no attempt is counted
                    await self.sleep(outage.endure(error))
                    continue
                first_error = first_error or error_text(error)
                ended = self._after(error, attempt, first_error, envelope)
                if isinstance(ended, DeadLettered | Suspended):
                    return ended
                await self.sleep(ended)
                attempt, outage = attempt + _counts(error), self.outage()

    def _after(
        self, error: Exception, attempt: int, first_error: str, envelope: Envelope
    ) -> DeadLettered | Suspended | float:
        """What a failed attempt leads to: an end, or so many seconds in place."""
        retries = self.wiring.agent.retries
        made = attempt - 1 + _counts(error)
        cause = retries.ends_at_once(error) or ("attempts" if made >= retries.attempts else None)
        seconds = 0.0 if cause else retries.wait(attempt, error, self.chance())
        put_off = not cause and self.suspends and seconds > retries.in_place
        log.warning(
            "attempt_failed agent=%s job=%s attempt=%d (%s): %s",
            self.wiring.agent.name,
            envelope.raw["trace_id"],
            attempt,
            f"the last: {cause}" if cause else f"{'put off for' if put_off else 'again in'} {seconds:.2f} s",
            error_text(error),
            exc_info=error if cause else None,
        )
        if cause:
            return DeadLettered(cause, first_error, attempt, error_text(error))
        return Suspended(seconds, first_error, made) if put_off else seconds

    def _over_budget(self, spent: BudgetSpent, attempt: int) -> Failed | Suspended:
        """Nothing was called. A budget that renews may be waited for; no attempt is counted then."""
        log.warning("over_budget agent=%s: %s", self.wiring.agent.name, spent)
        if self.wiring.agent.over_budget == "wait" and spent.renews_in is not None:
            later = spent.renews_in + self.chance() * _BUDGET_SPREAD
            return Suspended(later, str(spent), attempt - 1, "budget")
        return Failed("over_budget", str(spent), attempt)

    async def _attempt(self, payload: Event, envelope: Envelope, attempt: int) -> Any:
        try:
            return await self._call(payload, envelope, attempt)
        except Exception:
            raise
        except BaseException as odd:
            task = asyncio.current_task()
            if isinstance(odd, asyncio.CancelledError) and task is not None and self.abandoned(task):
                raise
            while task is not None and task.cancelling():  # by its own hand: the next attempt is to run
                task.uncancel()
            # Something inside the handler was cancelled, asked to exit, or panicked: an error of this attempt, no more.
            raise RuntimeError(f"the handler raised {type(odd).__name__}") from odd

    async def _call(self, payload: Event, envelope: Envelope, attempt: int) -> Any:
        handler, agent = self.wiring.handler, self.wiring.agent
        if agent.inline:
            return self.plain_call(payload, envelope, attempt)()
        if self.processes:  # none in `deliver`: the handler runs here
            return await self.processes.run(payload, envelope.raw, attempt)
        limit = AttemptTime(agent.timeout)
        if handler.is_async:
            arguments = (
                (payload, Context(*self._handed(envelope, attempt, limit))) if handler.takes_context else (payload,)
            )
            async with limit:
                return await handler.function(*arguments)
        call = self.plain_call(payload, envelope, attempt, limit)
        try:
            async with limit:
                return await in_thread(call, f"handle-{agent.name}")
        except TimeoutError:
            self._bound_given_up()
            raise

    def _bound_given_up(self) -> None:
        """Threads that were given up go on: a dependency that hangs must not fill the process with them."""
        name, most = f"handle-{self.wiring.agent.name}", 2 * self.wiring.agent.concurrency
        hanging = sum(thread.name == name for thread in threading.enumerate())
        if hanging > most:
            raise Stopped(
                f"agent {self.wiring.agent.name}: {hanging} handlers hang in their threads past their timeout"
            )

    def _handed(
        self, envelope: Envelope, attempt: int, limit: AttemptTime | None
    ) -> tuple[
        Envelope, int, Any, logging.Logger, Mapping[type[Any], Any] | None, Effects | None, Asker | None, JobNow | None
    ]:
        """What a context is made of. Without a time of its own the handler runs where nothing can be awaited: no steps."""
        effects = None
        if self.steps is not None and limit is not None:
            effects = Effects(self.steps, self.wiring.agent.name, envelope.raw, limit)
        job = None if limit is None else JobNow(self.jobs, envelope, limit)
        return envelope, attempt, self.resource, log, self.answers, effects, self.asker, job

    def plain_call(
        self, payload: Event, envelope: Envelope, attempt: int, limit: AttemptTime | None = None
    ) -> Callable[[], Any]:
        """The call of a plain handler, with its blocking context."""
        function, agent = self.wiring.handler.function, self.wiring.agent
        arguments: tuple[Any, ...] = (payload,)
        if self.wiring.handler.takes_context:
            arguments = (payload, BlockingContext(*self._handed(envelope, attempt, limit)))

        def call() -> Any:
            started = time.perf_counter()
            result = function(*arguments)
            if isinstance(result, Iterator):
                result = tuple(result)  # a generator's body runs here, in the handler's thread and time
            if agent.inline and time.perf_counter() - started > INLINE_WARNING:
                log.warning(
                    "inline_slow agent=%s took=%.3fs: drop inline=True", agent.name, time.perf_counter() - started
                )
            return result

        return call

    def _outputs(self, result: Any) -> tuple[Event, ...]:
        if result is None:
            return ()
        events = (result,) if isinstance(result, Event) else result
        if not isinstance(events, Iterable) or isinstance(events, Mapping | str | bytes):
            raise Poison("wrong_output", f"the handler returned {type(result).__name__}; expected events or None")
        events = tuple(events)
        for event in events:
            if type(event) not in self.wiring.handler.emits:
                raise Poison(
                    "wrong_output", f"the handler returned {type(event).__name__}, which its annotation does not name"
                )
        return events

    def _failed(self, decision: Fail, attempt: int) -> Outcome:
        reasons = self.wiring.agent.reasons
        if reasons and decision.reason not in {member.value for member in reasons}:
            return DeadLettered("wrong_output", f"Fail({decision.reason!r}) is not in {reasons.__name__}", attempt)
        return Failed(decision.reason, decision.detail, attempt)


def _is_outage(error: Exception) -> bool:
    return isinstance(error, Unreachable) or postgres.is_away(error) or kafka.is_outage(error)


def _counts(error: Exception) -> int:
    """How many attempts one that ended with `error` uses up: none, where the API said that it has no room for anybody."""
    return int(getattr(error, "counted", True))
