"""One event through the handler: bounded attempts, waits, and how each error ends. Knows nothing of Kafka."""

from __future__ import annotations

import asyncio
import logging
import random
import sysconfig
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from farandole import kafka, postgres
from farandole.agent import Wiring
from farandole.context import BlockingContext, Context
from farandole.envelope import Envelope
from farandole.errors import Fail, Poison, Reject, Stopped, Unreachable
from farandole.event import Event
from farandole.outage import Outage
from farandole.outcome import DeadLettered, Emitted, Failed, Outcome, Suspended
from farandole.processes import Processes
from farandole.threads import in_thread

log = logging.getLogger("farandole.handling")

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
                return DeadLettered("rejected", _text(refusal), attempt)
            except Poison as poison:
                return DeadLettered(poison.cause, _text(poison), attempt)
            except Stopped:
                raise
            except Exception as error:  # noqa: BLE001  whatever a handler raises has an end of its own
                if _is_outage(error):  # nobody's fault but the outage's: no attempt is counted
                    await self.sleep(outage.endure(error))
                    continue
                first_error = first_error or _text(error)
                ended = self._after(error, attempt, first_error, envelope)
                if isinstance(ended, DeadLettered | Suspended):
                    return ended
                await self.sleep(ended)
                attempt, outage = attempt + 1, self.outage()

    def _after(
        self, error: Exception, attempt: int, first_error: str, envelope: Envelope
    ) -> DeadLettered | Suspended | float:
        """What a failed attempt leads to: an end, or so many seconds in place."""
        retries = self.wiring.agent.retries
        cause = retries.ends_at_once(error) or ("attempts" if attempt >= retries.attempts else None)
        seconds = 0.0 if cause else retries.wait(attempt, error, self.chance())
        put_off = not cause and self.suspends and seconds > retries.in_place
        log.warning(
            "attempt_failed agent=%s job=%s attempt=%d (%s): %s",
            self.wiring.agent.name,
            envelope.raw["trace_id"],
            attempt,
            f"the last: {cause}" if cause else f"{'put off for' if put_off else 'again in'} {seconds:.2f} s",
            _text(error),
            exc_info=error if cause else None,
        )
        if cause:
            return DeadLettered(cause, first_error, attempt, _text(error))
        return Suspended(seconds, first_error, attempt) if put_off else seconds

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
        if handler.is_async:
            context: Any = Context(envelope, attempt, self.resource, log, self.answers)
            arguments = (payload, context) if handler.takes_context else (payload,)
            async with asyncio.timeout(agent.timeout):
                return await handler.function(*arguments)
        if self.processes:  # none in `deliver`: the handler runs here
            return await self.processes.run(payload, envelope.raw, attempt)
        call = self.plain_call(payload, envelope, attempt)
        if agent.inline:
            return call()
        try:
            async with asyncio.timeout(agent.timeout):
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

    def plain_call(self, payload: Event, envelope: Envelope, attempt: int) -> Callable[[], Any]:
        """The call of a plain handler, with its blocking context."""
        function, agent = self.wiring.handler.function, self.wiring.agent

        def call() -> Any:
            started = time.perf_counter()
            if self.wiring.handler.takes_context:
                result = function(payload, BlockingContext(envelope, attempt, self.resource, log, self.answers))
            else:
                result = function(payload)
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


#: Whose frames say nothing to who wrote the handler: the runtime's, the libraries', the standard library's.
_FOREIGN = tuple(
    {Path(__file__).parent, *(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib"))}
)
_LIBRARIES = {"site-packages", "dist-packages"}  #: wherever they lie: an interpreter may have several


def _is_own(file: str) -> bool:
    """Whether the user wrote it."""
    path = Path(file)
    return _LIBRARIES.isdisjoint(path.parts) and not any(path.is_relative_to(folder) for folder in _FOREIGN)


def _place(error: BaseException) -> str:
    """File and line of the innermost frame that is neither ours nor a library's; "" when there is none."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def _text(error: BaseException) -> str:
    """For people, bounded: the type says what the words alone do not."""
    place = _place(error)
    try:
        return f"{type(error).__name__}: {error}"[:1900] + (f" ({place})" if place else "")
    except Exception:  # noqa: BLE001  a user's exception may not even have a text
        return type(error).__name__
