"""What the test's agents do with an event: its plan, carried out."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

from farandole import Fail, Reject, Retry
from tests.integration.worker.words import Heard, Said


class Excuse(StrEnum):
    """The reasons these agents may fail with."""

    tired = "tired"


def note(mail: Heard) -> None:
    """One line a handling in the ledger file: what was handled, in which order."""
    ledger = os.environ.get("TEST_LEDGER")
    if ledger:
        with Path(ledger).open("a", encoding="utf-8") as out:
            out.write(f"{mail.word}\n")


def seconds_of(plan: str) -> float:
    """How long a plan "slow:SECONDS" takes; plain "slow" takes what the process was told, by default nothing."""
    return float(plan.partition(":")[2] or os.environ.get("TEST_SLOW", "0"))


def carry_out(mail: Heard, attempt: int) -> list[Said]:
    match mail.plan.split(":"):
        case ["none"]:
            return []
        case ["many", count]:
            return [Said(word=mail.word, place=place) for place in range(int(count))]
        case ["flaky", times] if attempt <= int(times):
            raise ConnectionResetError("not yet")
        case ["retry"] if attempt == 1:
            raise Retry("once more", after=0.01)
        case ["later", after, times] if attempt <= int(times):
            raise Retry("not yet", after=float(after))
        case ["boom"]:
            raise ValueError(f"attempt {attempt} cannot say {mail.word!r}")
        case ["reject"]:
            raise Reject("never")
        case ["fail", reason]:
            raise Fail(reason, "said so")
        case ["large"]:
            return [Said(word="x" * 1_100_000)]
        case ["size", bytes_]:
            return [Said(word="x" * int(bytes_))]
        case _:
            return [Said(word=mail.word)]
