"""How fast models may be called: the seam between a call and the limits that all workers share."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from farandole.models.errors import ModelError
from farandole.models.values import Heard, Request, Usage


class Turn(Protocol):
    """One call's turn."""

    def answered(self, usage: Usage, heard: Heard) -> None:
        """It was answered: what it used, and what the API said of its limits."""

    def failed(self, error: ModelError) -> None:
        """It failed; `error.headers` and `error.after` may say when to come again."""


class Pace(Protocol):
    """Gives calls their turns."""

    def turn(self, request: Request) -> AbstractAsyncContextManager[Turn]:
        """Wait for the turn of `request`, for as long as it takes; the block is the call."""
        ...
