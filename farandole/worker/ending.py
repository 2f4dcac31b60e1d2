"""Ending what runs beside each other, and which of several failures counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from farandole.worker.ledger import SlotLost


async def end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel them, and wait until they have noticed."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def failure_of(tasks: Iterable[asyncio.Future[Any]]) -> BaseException | None:
    """The first failure among these; that the slot is lost before any other, for nothing may be committed then."""
    found = [error for task in tasks if task.done() and not task.cancelled() and (error := task.exception())]
    return next((error for error in found if isinstance(error, SlotLost)), found[0] if found else None)
