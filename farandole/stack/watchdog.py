"""The watchdog: a small process that stops a stack when the process that owns it dies, even by SIGKILL.

Chosen over PR_SET_PDEATHSIG, which only Linux has, which fires when the *thread* that started the child ends, and which
would kill Postgres without an orderly stop; and over a pipe, which any forked child of the owner would keep open.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

from farandole.stack import process

MARK = "watchdog"
#: Seconds for a watchdog that is not needed any more to go.
PATIENCE = 2.0


def post(data: Path, owner_pid: int) -> None:
    """Start the watchdog of a stack."""
    command = [sys.executable, "-m", "farandole.stack.watchdog", str(data), str(owner_pid), process.mark(data, MARK)]
    with (data / "watchdog.log").open("ab") as output:
        subprocess.Popen(
            command, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


def dismiss(data: Path) -> None:
    """End the watchdog of a stack, if there is one (and we are not it)."""
    process.stop(process.mark(data, MARK), signal.SIGTERM, PATIENCE)


def watch(data: Path, owner_pid: int) -> None:
    """Wait for the owner's end, then stop what it still owns."""
    from farandole.stack.stack import Stack

    stack = Stack(data)
    owner = stack.book.load().owner
    if owner is None or owner.pid != owner_pid:
        return
    if process.start_time(owner_pid) == owner.started:
        process.wait_for_end(owner_pid)
    with stack.book.locked():  # an `up` that is at work may be taking the stack over
        if stack.book.load().owner == owner:
            stack.down(wipe=owner.wipe)
            if owner.wipe:
                shutil.rmtree(data, ignore_errors=True)


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]))
