"""One model's calls in one process: each waits for its slot, and what they hear is told to all others."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from farandole.models.configured import Limit
from farandole.pace.clock import DatabaseClock
from farandole.pace.report import Estimate, Report
from farandole.pace.store import HORIZON, Answer, Seen, Slot, Store
from farandole.pace.view import FRESH, View
from farandole.postgres import Connection
from farandole.together import Together

T = TypeVar("T")
Run = Callable[[Callable[[Connection[Any]], T]], Awaitable[T]]

#: Seconds. A slot is left empty when it is met later than this: calls that bunch would break the limit.
_LATE = 0.3
#: Seconds that a probe is waited for after its last sign of life: then its worker is dead, and another may try.
PROBE = 30.0
#: Seconds, at random between the two: after this, those without a slot ask again. Well within the horizon, for slots must
#: not run out in between; and while others probe.
_AGAIN = 0.3 * HORIZON, 0.7 * HORIZON
_PROBING = 0.3, 0.8
#: Seconds. What calls have used is told after this when nobody asks for a slot in the meantime.
_TELL = 0.5


@dataclass(frozen=True, slots=True, order=True)
class Ask:
    """For a slot. Those that have waited longest get the first."""

    number: int
    estimate: Estimate = field(compare=False)


@dataclass(frozen=True, slots=True)
class Go:
    """Call now. `probe` names its owner, where this call is the probe."""

    taken: Estimate
    probe: str | None = None


class Lane:
    """On the event loop; `run` does work with a connection elsewhere."""

    def __init__(self, model: str, limit: Limit, store: Store, run: Run[Any], clock: DatabaseClock) -> None:
        self.model = model
        self._limit = limit
        self._limited = any((limit.requests, limit.input_tokens, limit.output_tokens))
        self._store, self._run, self._clock = store, run, clock
        self.room = asyncio.Semaphore(limit.concurrency) if limit.concurrency else nullcontext()
        self.view = View(model, clock.now)
        self._asks: Together[Ask | None, Slot | Go | None] = Together(self._ask)
        self._looks: Together[None, None] = Together(self._look)
        self._one = asyncio.Lock()
        self._report = Report()
        self._telling: asyncio.TimerHandle | None = None
        self._lead = 0.0
        self._again = 0.0  #: monotonic; nobody asks for a slot before: all those that wait then ask together
        self._life, self._numbers = secrets.token_hex(6), count(1)

    async def go(self, estimate: Estimate) -> Go:
        """Wait until a call may be made. Raises Stopped when the database is away for too long."""
        ask = Ask(next(self._numbers), estimate)
        while True:
            if self.view.stale:
                await self._looks.ask(None)
            if (closed := self.view.closed_for) > 0:
                await asyncio.sleep(min(closed, FRESH) + random.uniform(0, 0.05))
            elif (pause := self._again - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            elif not self._limited and self.view.free:
                return Go(estimate)
            elif found := await (self._probe(ask) if self.view.braked else self._slot(ask)):
                return found

    async def _probe(self, ask: Ask) -> Go | None:
        """One of all that wait asks to be the probe. None: ask again, from the beginning."""
        async with self._one:
            return await self._slot(ask) if self.view.braked else None

    async def _slot(self, ask: Ask) -> Go | None:
        """None: ask again, from the beginning."""
        match answer := await self._asks.answer(ask, self._unclaimed):
            case Go():
                return answer
            case None:
                return None
            case Slot(at, taken):
                await asyncio.sleep(max(at - self._clock.now(), 0.0))
                if self.view.stale:
                    await self._looks.ask(None)
                late = self._clock.now() - at
                if late > _LATE:
                    self._lead = min(2 * late, HORIZON / 2)
                    return None
                return None if self.view.closed_for > 0 or self.view.braked else Go(taken)
        raise TypeError(f"no such answer: {answer!r}")

    def _unclaimed(self, answer: Slot | Go | None) -> None:
        """Whoever asked is gone: a probe is for somebody else. A slot stays empty."""
        if isinstance(answer, Go) and (probe := answer.probe):
            self.tell(lambda report: report.released(probe))

    def tell(self, note: Callable[[Report], None]) -> None:
        """Add to what the database is told with the next statement; at once, where others must know."""
        note(self._report)
        report = self._report
        if report.close is not None and report.why:
            self.view.heard(report.close, report.why)
        if report.urgent:
            self._asks.ask(None)
        elif self._limited and self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(_TELL, self._flush)

    def _flush(self) -> None:
        self._telling = None
        if self._report != Report():
            self._asks.ask(None)

    async def settled(self) -> None:
        """Wait until the database was told everything."""
        if self._telling is not None:
            self._telling.cancel()
            self._flush()
        await self._asks.settled()

    async def _look(self, asked: Sequence[None]) -> Sequence[None]:
        if self._report != Report():  # successes, too: failures must not add up over hours in which all else succeeds
            await self._asks.ask(None)
            return asked
        began = time.monotonic()
        self._saw(began, await self._run(lambda connection: self._store.look(connection, self.model)))
        return asked

    async def _ask(self, asked: Sequence[Ask | None]) -> Sequence[Slot | Go | None]:
        asking = sorted(one for one in asked if one is not None)
        estimates = [one.estimate for one in asking]
        if time.monotonic() < self._again and not self._report.urgent and len(asking) == len(asked):
            return [None] * len(asked)
        report, self._report = self._report, Report()
        owner, began = f"{self._life}.{next(self._numbers)}", time.monotonic()
        lead, self._lead = self._lead, 0.0
        answer: Answer = await self._run(
            lambda connection: self._store.turns(
                connection, self.model, self._limit, report, estimates, owner=owner, probe_seconds=PROBE, lead=lead
            )
        )
        if self._report.close is None:
            self.view.written()
        self._saw(began, answer.seen)
        given: list[Slot | Go] = [Go(estimates[0], owner)] if answer.probe else list(answer.slots)
        if (
            len(given) < len(estimates) and not self.view.closed_for
        ):  # none within the horizon, or not before a probe ends
            self._again = time.monotonic() + random.uniform(*(_PROBING if self.view.braked else _AGAIN))
        answers = dict(zip((one.number for one in asking), given, strict=False))
        return [None if one is None else answers.get(one.number) for one in asked]

    def _saw(self, began: float, seen: Seen) -> None:
        self._clock.heard(began, seen.now)
        self.view.saw(seen)
