"""Checkouts to start stacks in: a folder with a pyproject.toml, its commands, and what is left of its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from farandole.stack import process
from farandole.stack.stack import Stack
from tests.eventually import eventually

#: Seconds for a command that ends by itself.
PATIENCE = 60.0


@dataclass
class Checkout:
    """A project with a data folder of its own."""

    root: Path

    @property
    def stack(self) -> Stack:
        return Stack(self.root / ".farandole", brief=True)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a stack command, in a process group of its own as a terminal would."""
        return subprocess.Popen(
            [sys.executable, "-m", "farandole.stack", *arguments],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a stack command to its end."""
        with self.start(*arguments) as command:
            out, err = command.communicate(timeout=PATIENCE)
            return subprocess.CompletedProcess(arguments, command.returncode, out, err)

    def processes(self) -> list[int]:
        """Every live process of its stack: of the services, their children, the watchdog."""
        names = ("kafka", "postgres", "registry", "watchdog")
        return [one.pid for name in names for one in process.find(process.mark(self.stack.data, name))]

    def daemons(self) -> list[int]:
        """Those without the children."""
        return [pid for pid in self.processes() if process.leads(pid)]


#: The fixture `new_checkout`.
NewCheckout = Callable[[], Checkout]


def fill(checkout: Checkout, formatted: Path) -> None:
    """Copy formatted data into a checkout, owners included."""
    checkout.stack.data.mkdir(exist_ok=True)
    for name in ("kafka", "postgres", "postgres.password"):
        subprocess.run(["cp", "-a", formatted / name, checkout.stack.data / name], check=True)


def kill(pid: int) -> None:
    """SIGKILL a process and see it gone."""
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: process.start_time(pid) is None, f"the end of process {pid}")


def kill_group(command: subprocess.Popen[str]) -> None:
    """SIGKILL a command and whatever shares its process group, and see it gone."""
    os.killpg(command.pid, signal.SIGKILL)
    command.communicate()
    assert command.returncode == -signal.SIGKILL
