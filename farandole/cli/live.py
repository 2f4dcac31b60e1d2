"""Rows of a pipe in handfuls: a quiet moment ends one, so that a row never waits for those that may come."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

#: Seconds. A pipe that is quiet for so long has given what it has for now.
QUIET = 0.1
#: Rows. Eight chunks of the client: fewer would leave the broker idle between two handfuls.
HANDFUL = 4000


async def handfuls(rows: Iterable[T]) -> AsyncIterator[list[T]]:
    """What `rows` has given, as soon as it is quiet; reading it may block, here it blocks a thread of its own.

    Raises what reading raised, after the rows before it.
    """
    pipe = _Pipe(rows)
    # a daemon: nobody can wake a thread that waits for a pipe, and the process must be able to end
    threading.Thread(target=pipe.read, name="farandole-rows", daemon=True).start()
    end: _End | None = None
    while end is None:
        taken, end = await asyncio.to_thread(pipe.gather)
        if taken:
            yield taken
    if end.error:
        raise end.error


@dataclass(frozen=True, slots=True)
class _End:
    """The last item; `error` is what the reading ended with."""

    error: BaseException | None = None


class _Pipe(Generic[T]):
    """Rows between the thread that reads them and those who take them."""

    def __init__(self, rows: Iterable[T]) -> None:
        self._rows = rows
        self._waiting: queue.Queue[T | _End] = queue.Queue(HANDFUL)  # bounded: a file must not end up in memory

    def read(self) -> None:
        try:
            for row in self._rows:
                self._waiting.put(row)
        except BaseException as error:  # noqa: BLE001  raised again where the rows are used
            self._waiting.put(_End(error))
        else:
            self._waiting.put(_End())

    def gather(self) -> tuple[list[T], _End | None]:
        """What there is; waits for a quiet moment at most, so that its thread never outlives a Ctrl-C."""
        taken: list[T] = []
        while len(taken) < HANDFUL:
            try:
                item = self._waiting.get(timeout=QUIET)
            except queue.Empty:
                break
            if isinstance(item, _End):
                return taken, item
            taken.append(item)
        return taken, None
