"""Asks for slots with one statement after the other, on a clock that the test puts on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from farandole.models.configured import Limit
from farandole.pace.report import Estimate, Report
from farandole.pace.store import HORIZON, Answer, Slot, Store
from farandole.postgres import Connection

LIMIT = Limit(requests=40, input_tokens=3000, output_tokens=1000)


class Desk:
    """A store, and a clock that the test puts on."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        self.ahead = 0.0
        self.store = Store("key", lambda: self.ahead)
        self.model = str(uuid4())

    def ask(self, *asked: Estimate, limit: Limit = LIMIT, report: Report | None = None, **more: Any) -> Answer:
        return self.store.turns(self.connection, self.model, limit, report or Report(), asked, owner="me", **more)

    def slots(self, asked: Sequence[Estimate], limit: Limit = LIMIT) -> list[Slot]:
        """For all of them, however long that takes."""
        found: list[Slot] = []
        while left := asked[len(found) :]:
            found += self.ask(*left, limit=limit).slots
            self.ahead += HORIZON / 2 if len(found) < len(asked) else 0
        return found
