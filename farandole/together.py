"""What many tasks ask at about the same time becomes one statement: answered together, each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from farandole.errors import Stopped

Q = TypeVar("Q")
A = TypeVar("A")

#: Questions of one statement at most: memory, and how long its rows are locked.
MOST = 500


class Together(Generic[Q, A]):
    """Questions to `answer`, which gets a list and returns the answers in its order. What comes while it is at work is
    asked next. On the event loop.

    A list of several questions that fails for a reason of its own, which is no outage, is asked one by one: nobody
    suffers from another's question.
    """

    def __init__(self, answer: Callable[[Sequence[Q]], Awaitable[Sequence[A]]]) -> None:
        self._answer = answer
        self._asked: list[tuple[Q, asyncio.Future[A]]] = []
        self._working: asyncio.Task[None] | None = None

    def ask(self, question: Q) -> asyncio.Future[A]:
        """The answer, some time. The question is asked even when nobody waits for the answer any more."""
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._asked.append((question, future))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        return future

    async def answer(self, question: Q, unclaimed: Callable[[A], object]) -> A:
        """The answer; where whoever asked has been cancelled meanwhile, `unclaimed` is called with it."""
        asked = self.ask(question)
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(lambda late: late.exception() or unclaimed(late.result()))
            raise

    async def settled(self) -> None:
        """Wait until all that was asked has its answer."""
        while self._working is not None and not self._working.done():
            await asyncio.wait([self._working])

    async def _work(self) -> None:
        await asyncio.sleep(0)  # whoever is about to ask as well does so now
        while self._asked:
            batch, self._asked = self._asked[:MOST], self._asked[MOST:]
            await self._ask(batch)

    async def _ask(self, batch: list[tuple[Q, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._answer([question for question, _ in batch])
        except Exception as failure:  # noqa: BLE001  raised where each answer is waited for
            if len(batch) > 1 and not isinstance(failure, Stopped):
                for one in batch:
                    await self._ask([one])
                return
            for _, future in batch:
                if not future.done():
                    future.set_exception(failure)
                    future.exception()  # seen: nobody may wait for it any more
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)
