"""What the tests of the pace share: paces on one database, as in several processes, whose clock the test may put on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from farandole import migrate, postgres
from farandole.models.configured import Limit
from farandole.models.values import Request
from farandole.outage import Outage
from farandole.pace.shared import SharedPace
from farandole.postgres import Connection
from farandole.settings import Settings

MODEL = "claude-haiku-5-5"


def request(model: str = MODEL, max_tokens: int = 100, text: str = "Hello") -> Request:
    return Request(model, max_tokens, {"messages": [{"role": "user", "content": text}]})


async def until(look: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    """Until `look()` is true; fails when that takes too long."""
    try:
        async with asyncio.timeout(seconds):
            while not look():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    except TimeoutError:
        pytest.fail(f"not within {seconds:g} s: {what}")


class Office:
    """Makes paces, each with a connection of its own, as another process has it."""

    def __init__(self, settings: Settings, stack: AsyncExitStack) -> None:
        self.settings = settings
        self.ahead = 0.0  #: seconds that the database's clock is put on
        self._stack = stack

    async def pace(self, limit: Limit | None = None) -> SharedPace:
        settings = self.settings.model_copy(update={"limits": {MODEL: limit} if limit else {}})
        made = SharedPace(settings, "test", lambda: Outage("test", 60), lambda: self.ahead)
        return await self._stack.enter_async_context(made)

    def row(self, columns: str) -> Any:
        with postgres.connect(self.settings) as connection:
            row = connection.execute(f"SELECT {columns} FROM model_pace").fetchone()
            return row or (None,)


@pytest.fixture
async def office(farandole_settings: Settings) -> AsyncIterator[Office]:
    migrate.migrate(farandole_settings)
    async with AsyncExitStack() as stack:
        yield Office(farandole_settings, stack)


@pytest.fixture
def connection(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    migrate.migrate(farandole_settings)
    with postgres.connect(farandole_settings) as made:
        yield made
