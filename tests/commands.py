"""farandole's commands as real processes, for tests: started with a test's namespace, logged, killed, waited for."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farandole.settings import Settings
from tests import spawning
from tests.eventually import eventually
from tests.spawning import ROOT

__all__ = ["ROOT", "Command", "environment", "running", "typed"]


def environment(settings: Settings, **more: str) -> dict[str, str]:
    """The environment of a command that works in the test's namespace."""
    return {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": settings.brokers,
        "DATABASE_URL": settings.database,
        "FARANDOLE_NAMESPACE": settings.namespace,
        **more,
    }


def typed(settings: Settings, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A command to its end; `more` goes to its environment."""
    return spawning.run([*map(str, arguments)], cwd=ROOT, environment=environment(settings, **more))


class Command:
    """A running `farandole …` (or of another `module`); its output goes to `log`, `more` to its environment."""

    def __init__(
        self,
        settings: Settings,
        log: Path,
        *arguments: str | Path,
        cwd: Path = ROOT,
        more: dict[str, str] | None = None,
        module: str = "farandole",
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = spawning.started(
                [*map(str, arguments)],
                cwd=cwd,
                environment=environment(settings, **(more or {})),
                out=out,
                stdin=stdin,
                module=module,
            )

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def said(self, text: str, times: int = 1, seconds: float = 30.0) -> None:
        """Wait until the log holds `text`; fails early, with the log, when the process ends without."""

        def look() -> bool:
            if self.output().count(text) >= times:
                return True
            assert self.process.poll() is None, (
                f"ended with {self.process.returncode} before it said {text!r}:\n{self.output()}"
            )
            return False

        eventually(look, f"{text!r} in {self.log}:\n{self.output()[-2000:]}", seconds)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and reap it."""
        self.process.kill()
        self.process.wait(10)

    def stop(self, seconds: float = 40.0) -> int:
        """SIGTERM, and the exit code."""
        self.process.terminate()
        return self.process.wait(seconds)


@contextmanager
def running(
    settings: Settings, log: Path, *arguments: str | Path, cwd: Path = ROOT, more: dict[str, str] | None = None
) -> Iterator[Command]:
    """A command for the length of a block; killed at its end if it still runs, even stopped by SIGSTOP."""
    command = Command(settings, log, *arguments, cwd=cwd, more=more)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.signal(signal.SIGCONT)
            command.kill()
