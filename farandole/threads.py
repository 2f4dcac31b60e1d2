"""A thread for a call that may hang: a daemon, so that one that was given up does not hold the process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds for a task to notice that it was cancelled.
_LEFT_BEHIND = 1.0


def in_thread(call: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Run `call` in a thread of its own; its result or error, for the running event loop.

    Not an executor's pool: Python waits for a pool's threads at exit, however long their handler hangs. Starting a thread
    costs some 50 µs, little beside the blocking work that plain handlers are for; the lanes bound how many there are.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():  # given up: timed out, or the worker is leaving
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001  handed to whoever awaits the future
            failure = RuntimeError("the handler raised StopIteration") if isinstance(error, StopIteration) else error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def run_to_its_end(main: Coroutine[Any, Any, T]) -> T:
    """Like asyncio.run; but tasks and threads that handlers have left behind do not hold it up for long."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_LEFT_BEHIND))


class Caller:
    """A thread for calls into a library that do not keep their own timeout; a new one after each call that hung.

    One call at a time. A call that hangs stays behind, with all it holds.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] | None = None

    def within(self, seconds: float, call: Callable[[], object]) -> None:
        """Run `call` and raise what it raises; TimeoutError when it has not ended in time."""
        ended: SimpleQueue[BaseException | None] = SimpleQueue()

        def run() -> None:
            try:
                call()
            except BaseException as error:  # noqa: BLE001  raised below, where it is waited for
                ended.put(error)
            else:
                ended.put(None)

        if self._calls is None:
            self._calls = SimpleQueue()
            threading.Thread(target=_serve, args=(self._calls,), name=self._name, daemon=True).start()
        self._calls.put(run)
        try:
            failure = ended.get(timeout=seconds)
        except Empty:
            self._calls = None
            raise TimeoutError(f"{self._name}: a call did not end within {seconds:g} s") from None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """No more calls: its thread ends."""
        if self._calls is not None:
            self._calls.put(None)
            self._calls = None


def _serve(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    while call := calls.get():
        call()
