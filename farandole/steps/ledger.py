"""The ledger of steps as a worker's handlings use it: claims and ends in batches, leases kept while calls run, and what dead
workers have left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any

from farandole.errors import Stopped
from farandole.outage import Outage
from farandole.session import Aside, Session
from farandole.settings import Settings
from farandole.steps.claims import Answer, Claim, Finish, Granted, Step
from farandole.steps.store import Store
from farandole.steps.sweeping import Sweep
from farandole.together import Together

#: Of a lease: it is renewed after this part of it, so that two renewals may fail.
_RENEW = 1 / 3

#: Seconds. At the end of a worker, for what its abandoned handlings leave to be written.
_LEAVE = 5.0


class Ledger:
    """One a worker, opened by `async with`. On the event loop; its statements run on a thread and connection of its own."""

    def __init__(self, settings: Settings, agent: str, outage: Callable[[], Outage]) -> None:
        self._session = Aside(Session(settings, f"farandole {agent} steps", outage), f"steps-{agent}")
        self._store = Store(settings.lease_seconds)
        self._sweep = Sweep(agent, settings.lease_seconds)
        self._lease = settings.lease_seconds
        self._begins: Together[Claim, Answer] = Together(partial(self._run, self._store.begin))
        self._ends: Together[Finish, bool] = Together(partial(self._run, self._store.finish))
        self._leases: dict[str, tuple[Step, float]] = {}  #: by owner: and when it was last renewed
        self._life, self._numbers = secrets.token_hex(6), count(1)
        self._beating: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Ledger:
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait([self._beating])
            self._failure()  # seen: `begin` has told it
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE):
                await self._begins.settled()
                await asyncio.sleep(0)  # what was granted to nobody is given back
                await self._ends.settled()
        self._session.close()

    def owner(self) -> str:
        """A name for the owner of a lease, which nobody else has."""
        return f"{self._life}.{next(self._numbers)}"

    async def begin(self, claim: Claim) -> Answer:
        """What the ledger says to a claim. Waits out outages; raises Stopped when one lasts too long: no ledger, no call."""
        if self._beating is None or self._beating.done():
            raise Stopped("the ledger of steps keeps no leases any more") from self._failure()
        return await self._begins.answer(claim, partial(self._unclaimed, claim))

    def _unclaimed(self, claim: Claim, answer: Answer) -> None:
        """Whoever asked has gone, and has called nothing: a grant is given back, or a person would be asked about it."""
        if isinstance(answer, Granted):
            trail = json.dumps(list(answer.trail)) if answer.trail else None
            self.finish(Finish(claim.step, claim.owner, "failed", error="given up before the call", trail=trail))

    def finish(self, end: Finish) -> asyncio.Future[bool]:
        """Write how a step ended; whether it was still its owner's. It is written even when nobody waits for the answer."""
        return self._ends.ask(end)

    @contextmanager
    def leased(self, claim: Claim) -> Iterator[None]:
        """Keep the lease of a granted claim for the block; in any thread."""
        self._leases[claim.owner] = claim.step, time.monotonic()
        try:
            yield
        finally:
            del self._leases[claim.owner]

    def _failure(self) -> BaseException | None:
        beating = self._beating
        return None if beating is None or beating.cancelled() else beating.exception()

    async def _beat(self) -> None:
        pause = self._lease * _RENEW
        while True:
            await asyncio.sleep(pause / 2)
            now = time.monotonic()
            due = [(step, owner) for owner, (step, renewed) in list(self._leases.items()) if now - renewed >= pause / 2]
            if due:
                await self._run(self._store.beat, due)
                for step, owner in due:
                    if owner in self._leases:
                        self._leases[owner] = step, now
            if self._sweep.due:
                await self._session.run(self._sweep.run)

    async def _run(self, work: Callable[[Any, Sequence[Any]], Any], given: Sequence[Any]) -> Any:
        return await self._session.run(lambda connection: work(connection, given))
