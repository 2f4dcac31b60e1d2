"""A Ctrl-C is never lost: while there is nothing to clean up it ends the process, later it comes until it is heard."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

#: farandole.errors.ExitCode.INTERRUPTED, which is not imported yet when the first signal may come.
INTERRUPTED = 130
#: Seconds. What swallowed a Ctrl-C, the end of an object, is over in less.
AGAIN_AFTER = 0.02


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def leave_at_once() -> None:
    """From now on a Ctrl-C ends the process, quietly."""
    signal.signal(signal.SIGINT, _leave)


@contextmanager
def leaving() -> Iterator[None]:
    """Within the block a Ctrl-C ends the process, instead of raising KeyboardInterrupt, which imports may swallow.

    Where it is ignored or handled already it stays so, and so it does in another thread than the main one.
    """
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    leave_at_once()
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


@contextmanager
def heard() -> Iterator[None]:
    """Within the block a KeyboardInterrupt that Python cannot raise, as in a `__del__`, comes again a moment later."""
    usual = sys.unraisablehook

    def hook(lost: "UnraisableHookArgs", /) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            _come_again()
        else:
            usual(lost)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = usual


def _come_again() -> None:
    timer = threading.Timer(AGAIN_AFTER, os.kill, [os.getpid(), signal.SIGINT])
    timer.daemon = True
    timer.start()
