"""Signals while a stack starts: each that asks to end becomes KeyboardInterrupt, and none disturbs the clean-up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

#: What a terminal, a supervisor and a closed window send.
ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _raise(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def raised() -> AbstractContextManager[None]:
    """Within the block SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt; by itself SIGTERM skips every clean-up."""
    return _handled_by(_raise)


def ignored() -> AbstractContextManager[None]:
    """Within the block nothing but SIGKILL ends us; for a clean-up of bounded length."""
    return _handled_by(signal.SIG_IGN)


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # Python handles signals in the main thread only
        yield
        return
    before = {number: signal.signal(number, handler) for number in ASKING}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, signal.SIG_DFL if old is None else old)
