"""How a worker is getting on: what it settled, what it set aside, and whether that is too much to go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from farandole.errors import Stopped
from farandole.outcome import DeadLettered
from farandole.worker.brake import Brake
from farandole.worker.flight import Flight
from farandole.worker.holdings import Holdings, Item
from farandole.worker.vitals import Signs, Vitals

log = logging.getLogger("farandole.worker")

#: Seconds between two reminders that the brake is on.
_REMIND = 60.0


class Conduct:
    """Used on the event loop. `halt` is called once, when the brake goes on: nothing new is to begin then."""

    def __init__(self, agent: str, brake: int, halt: Callable[[], object]) -> None:
        self._agent = agent
        self._brake = Brake(agent, brake)
        self._halt = halt
        self._braked = asyncio.Event()
        self.signs = Signs()

    @property
    def braked(self) -> bool:
        """Whether too much was dead-lettered: the worker takes nothing more, and waits for a person."""
        return self._braked.is_set()

    def ended(self, items: Iterable[Item]) -> None:
        """The outcome of these is known, for good."""
        for item in items:
            if item.outcome is not None and (reason := self._brake.saw(item.outcome)) and not self.braked:
                self.signs.braked = reason
                self._braked.set()
                self._halt()

    def settled(self, items: Iterable[Item]) -> None:
        """These were committed: count them, and name what was set aside."""
        for item in items:
            outcome, record = item.outcome, item.record
            self.signs.settled(outcome)
            if isinstance(outcome, DeadLettered):
                log.warning(
                    "dead_lettered agent=%s cause=%s topic=%s partition=%d offset=%d attempts=%d: %s",
                    self._agent,
                    outcome.cause,
                    record.topic,
                    record.partition,
                    record.offset,
                    outcome.attempts,
                    outcome.error,
                )

    async def remind(self) -> None:
        """Say why the worker stands still, again and again. Never ends."""
        await self._braked.wait()
        while True:
            log.error("braked agent=%s: %s", self._agent, self.signs.braked)
            await asyncio.sleep(_REMIND)

    def vitals(self, flight: Flight, holdings: Holdings, *, draining: bool) -> Vitals:
        """The picture of this moment."""
        self.signs.draining = draining
        held = list(holdings.held.values())
        return self.signs.vitals(
            in_flight=flight.running,
            queued=flight.queued + sum(len(one.waiting) for one in held),
            uncommitted=sum(one.uncommitted for one in held),
            paused=sum(one.paused for one in held),
            held=len(held),
        )

    def answer(self) -> None:
        """Raise Stopped, with the reason, when the worker ends with its brake on."""
        if self.signs.braked:
            raise Stopped(f"agent {self._agent}: {self.signs.braked}")
