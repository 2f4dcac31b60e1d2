"""The time an attempt may take: what it waits for others' sake, for a turn or for another worker's step, is not its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


class AttemptTime:
    """Seconds of one attempt; the clock can be stopped. On the event loop, as `async with`: TimeoutError when the block has
    taken longer, not counting the time in `stopped`.

    >>> async def attempt(time: AttemptTime) -> None:
    ...     async with time:
    ...         with time.stopped():
    ...             ...  # waiting for somebody else
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._left = seconds
        self._timeout: asyncio.Timeout | None = None
        self._stopped = 0

    async def __aenter__(self) -> None:
        self._timeout = asyncio.timeout(self._left)
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        timeout, self._timeout = self._timeout, None  # what outlives the attempt has no time of its own
        if timeout is not None:
            await timeout.__aexit__(kind, error, trace)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """The clock stands still in this block; concurrent ones may overlap."""
        timeout = self._timeout
        if timeout is None or timeout.expired():
            yield
            return
        now = asyncio.get_running_loop().time
        if not self._stopped:
            self._left = (timeout.when() or now()) - now()
            timeout.reschedule(None)
        self._stopped += 1
        try:
            yield
        finally:
            self._stopped -= 1
            if not self._stopped and self._timeout is timeout and not timeout.expired():
                timeout.reschedule(now() + self._left)
