"""A thread for each call of a plain handler: a daemon, so that one that was given up does not hold the process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


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
