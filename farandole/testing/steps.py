"""Steps of one delivery in a test, which has no database: they run once within it, and are forgotten after it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from farandole.steps.claims import Answer, Claim, Done, FailedForGood, Finish, Granted, Step


class Remembered:
    """Keeps ends of steps for as long as it lives; nobody else is there to share them, and none is held for a person."""

    def __init__(self) -> None:
        self._ends: dict[Step, Finish] = {}
        self._numbers = count(1)

    def owner(self) -> str:
        return f"delivery.{next(self._numbers)}"

    async def begin(self, claim: Claim) -> Answer:
        end = self._ends.get(claim.step)
        if end is not None and end.state == "done":
            return Done(end.result, end.error)
        if end is not None and end.failure is not None and end.failed_run == claim.run:
            return FailedForGood(end.failure)
        return Granted(0)

    def finish(self, end: Finish) -> asyncio.Future[bool]:
        self._ends[end.step] = end
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        future.set_result(True)
        return future

    @contextmanager
    def leased(self, claim: Claim) -> Iterator[None]:
        yield
