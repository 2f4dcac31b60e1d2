"""What the handlers of a run wrote down by themselves: a line for each call they began, and for each they saw the end of."""

from __future__ import annotations

import json
import os
from pathlib import Path

#: Where the files lie, one a process.
FOLDER = "CHAOS_NOTES"


def note(what: str, key: str) -> None:
    """One append, which a SIGKILL never cuts in two."""
    file = Path(os.environ[FOLDER]) / f"{os.getpid()}.jsonl"
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, f"{json.dumps([what, key])}\n".encode())
    finally:
        os.close(handle)


def read(folder: Path) -> list[tuple[str, str]]:
    """(what, key) of every line."""
    lines = (line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text(encoding="utf-8").splitlines())
    return [(what, key) for what, key in map(json.loads, lines)]
