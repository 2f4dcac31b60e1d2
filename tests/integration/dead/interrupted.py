"""A redrive that stands still for a test to kill it: `between` two transactions, or `inside` one."""

from __future__ import annotations

import sys
import time
from typing import Any

from farandole import redrive
from farandole.dead import Chosen
from farandole.settings import load_settings


class Stuck:
    """A producer whose commit never comes; everything before it is on the broker."""

    def __init__(self, producer: Any) -> None:
        self.producer = producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.producer, name)

    def commit_transaction(self, _timeout: float) -> None:
        assert self.producer.flush(30) == 0
        stand_still()


def stand_still() -> None:
    print("standing still", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    redrive.BATCH = 10
    with redrive.answering(load_settings()) as answers:
        letters = answers.open(Chosen())
        if sys.argv[1] == "inside":
            answers._producer = Stuck(answers._producer)  # type: ignore[assignment]
        for _ in answers.redrive(letters):
            stand_still()
