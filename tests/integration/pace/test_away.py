"""Without Postgres nobody calls."""

from __future__ import annotations

import asyncio

import pytest

from farandole import migrate
from farandole.models.configured import Limit
from farandole.models.values import Heard, Usage
from farandole.outage import Outage
from farandole.pace.shared import SharedPace
from farandole.settings import load_settings
from farandole.stack.stack import Stack
from tests.integration.pace.conftest import MODEL, request


@pytest.mark.parametrize("limit", [None, Limit(requests=6000)])
async def test_turns_wait_for_postgres_and_go_on_when_it_is_back(farandole_outages: Stack, limit: Limit | None) -> None:
    endpoints = farandole_outages.endpoints
    settings = load_settings(
        kafka_bootstrap_servers=endpoints.kafka_bootstrap_servers,
        database_url=endpoints.database_url,
        namespace="paceaway",
    ).model_copy(update={"limits": {MODEL: limit} if limit else {}})
    migrate.migrate(settings)
    loop, away, calls = asyncio.get_running_loop(), asyncio.Event(), 0

    async def call() -> None:
        nonlocal calls
        async with pace.turn(request()) as turn:
            calls += 1
            turn.answered(Usage(1, 1), Heard(200))

    def told(_: BaseException) -> None:
        loop.call_soon_threadsafe(away.set)

    async with SharedPace(settings, "test", lambda: Outage("test", 120, tell=told)) as pace:
        await call()
        farandole_outages.postgres.kill()
        pace._lane(MODEL).view._at = 0.0  # a second later
        waiting = asyncio.create_task(call())
        await asyncio.wait_for(away.wait(), 60)
        assert calls == 1
        await asyncio.to_thread(farandole_outages.postgres.start)
        await asyncio.wait_for(waiting, 60)
    assert calls == 2
