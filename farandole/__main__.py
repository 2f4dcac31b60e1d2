"""The entry point, as `farandole` and as `python -m farandole`: a Ctrl-C is quiet from the first import to the last line."""

import os
import signal
import sys
import threading

from farandole.interrupts import INTERRUPTED, heard, leave_at_once


def _leave_threads(code: object) -> None:
    """Python waits for threads at its end, however long they hang: those that a user's code has left are left behind."""
    if all(thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def main() -> None:
    """Run the command line. Before a command begins and after it has ended there is nothing to clean up."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:  # a shell's background job ignores Ctrl-C, and so do we
        usual = None
    if usual:
        leave_at_once()
    from farandole.cli import main as run

    try:
        with heard():
            if usual:
                signal.signal(signal.SIGINT, usual)
            run()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    except SystemExit as end:
        _leave_threads(end.code)
        raise
    finally:
        if usual:
            leave_at_once()


if __name__ == "__main__":
    main()
