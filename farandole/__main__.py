"""The entry point, as `farandole` and as `python -m farandole`: a Ctrl-C is quiet from the first import to the last line."""

import os
import signal
from types import FrameType

#: farandole.errors.ExitCode.INTERRUPTED, which is not imported yet when the first signal may come.
INTERRUPTED = 130


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def main() -> None:
    """Run the command line. Before a command begins and after it has ended there is nothing to clean up."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:  # a shell's background job ignores Ctrl-C, and so do we
        usual = None
    if usual:
        signal.signal(signal.SIGINT, _leave)
    from farandole.cli import main as run

    try:
        if usual:
            signal.signal(signal.SIGINT, usual)
        run()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    finally:
        if usual:
            signal.signal(signal.SIGINT, _leave)


if __name__ == "__main__":
    main()
