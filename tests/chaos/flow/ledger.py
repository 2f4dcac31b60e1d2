"""The ledger of the flow under fire: one line for the start of every handling and one for its end, in a file a process."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farandole import BlockingContext, Context

#: Where the files lie.
FOLDER = "CHAOS_LEDGER"


class Ledger:
    """Writes a line as one append, which a SIGKILL never cuts in two."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._count = itertools.count(1)
        file = Path(os.environ[FOLDER]) / f"{agent}-{os.getpid()}.jsonl"
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    @contextmanager
    def handling(self, ctx: Context | BlockingContext) -> Iterator[str]:
        """A handling from its start to its end; its name goes into what it emits."""
        name, raw = f"{os.getpid()}-{next(self._count)}", ctx.envelope.raw
        told = {"handling": name, "agent": self._agent, "event_id": raw["event_id"], "key": raw["trace_id"]}
        told |= {"run": raw["run"], "attempt": ctx.attempt}
        self._write("start", told)
        how = "emitted"
        try:
            yield name
        except BaseException as error:
            how = type(error).__name__
            raise
        finally:
            self._write("end", told | {"how": how})

    def _write(self, what: str, told: dict[str, Any]) -> None:
        # CLOCK_MONOTONIC is one clock for all processes of a machine: lines of several files can be put in order.
        line = json.dumps({"what": what, "at": time.monotonic_ns()} | told)
        os.write(self._file, f"{line}\n".encode())
