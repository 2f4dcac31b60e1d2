"""The effect of the steps' tests: a line in a file that outlives its process, which may be killed before or after it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from pydantic import BaseModel

from farandole import Fail, Retry


class Receipt(BaseModel):
    """What posting returns."""

    word: str
    number: int


def posted() -> Path:
    return Path(os.environ["TEST_POSTED"])


def post(word: str, plan: str, key: str) -> Receipt:
    """Append a line; do to this process what the plan says, but only the first time, if not "always"."""
    first = _first(word)
    if plan == "kill-always" or (plan == "kill-before" and first):
        os.kill(os.getpid(), signal.SIGKILL)
    with posted().open("a", encoding="utf-8") as out:
        out.write(f"{word} {key}\n")
    if plan == "kill-after" and first:
        os.kill(os.getpid(), signal.SIGKILL)
    if plan == "refused" and first:
        raise Retry("come again", after=0.01)
    if plan == "broken" and first:
        raise ConnectionResetError("nobody knows")
    if plan == "no":
        raise Fail("declined", "we do not want to")
    return Receipt(word=word, number=len(posted().read_text(encoding="utf-8").splitlines()))


def _first(word: str) -> bool:
    mark = posted().with_name(f"{word}.mark")
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
