"""The gate that lets one record be handled alone in its process, so that no bystander is blamed when the process dies."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from types import TracebackType


class Isolation:
    """Shared by all agents of a process and used on its event loop. Ordinary handlings go in `together`; one that is to be
    `alone` waits until they have left, and holds up those that come later.

    They take turns: who was held up goes in before the next one that wants to be alone. A handling goes in once; going in
    again from inside would wait for itself.

    >>> async def handle(isolation: Isolation) -> None:
    ...     async with isolation.together():
    ...         ...
    """

    def __init__(self) -> None:
        self._inside = 0  # together
        self._occupied = False  # by the one that is alone
        self._wanting: deque[asyncio.Future[None]] = deque()  # to be alone
        self._held_up: deque[asyncio.Future[None]] = deque()
        self._together, self._alone = _Together(self), _Alone(self)
        self.living: set[str] = set()  #: the lives of workers in this process: those that ended did not die

    @property
    def wanted(self) -> bool:
        """Whether somebody is alone or waits to be. A handler that runs without an await in between need not go in while
        nobody is."""
        return self._occupied or bool(self._wanting)

    def together(self) -> _Together:
        """`async with` this around an ordinary handling."""
        return self._together

    def alone(self) -> _Alone:
        """`async with` this around the handling, and the commit, of a record that nothing else may be handled beside."""
        return self._alone

    async def _enter(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._held_up.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # let in and cancelled at once
                self._leave()
            else:
                with contextlib.suppress(ValueError):
                    self._held_up.remove(future)
            raise

    def _leave(self) -> None:
        self._inside -= 1
        if not self._inside and self._wanting:
            self._next()

    async def _occupy(self) -> None:
        if not self._inside and not self.wanted:
            self._occupied = True
            return
        future = asyncio.get_running_loop().create_future()
        self._wanting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():
                self._vacate()
            else:
                with contextlib.suppress(ValueError):
                    self._wanting.remove(future)
                self._next()
            raise

    def _vacate(self) -> None:
        self._occupied = False
        self._let_in()
        self._next()

    def _next(self) -> None:
        """Let in whoever may go in now, after somebody has left or has given up waiting."""
        while self._wanting and not self._inside and not self._occupied:
            future = self._wanting.popleft()
            if not future.done():
                self._occupied = True
                future.set_result(None)
        if not self.wanted:
            self._let_in()

    def _let_in(self) -> None:
        while self._held_up:
            future = self._held_up.popleft()
            if not future.done():
                self._inside += 1
                future.set_result(None)


class _Together:
    __slots__ = ("_gate",)

    def __init__(self, gate: Isolation) -> None:
        self._gate = gate

    async def __aenter__(self) -> None:
        gate = self._gate
        if gate._occupied or gate._wanting:
            await gate._enter()
        else:
            gate._inside += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate._leave()


class _Alone:
    __slots__ = ("_gate",)

    def __init__(self, gate: Isolation) -> None:
        self._gate = gate

    async def __aenter__(self) -> None:
        await self._gate._occupy()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate._vacate()
