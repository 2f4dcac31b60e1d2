"""The shop on a real Postgres answers as the one in memory does."""

from __future__ import annotations

import asyncio

import pytest

from agents.shop.customers import SeedCustomers, open_customers, seed
from farandole import postgres
from farandole.settings import Settings
from schemas.jobs import History

ADDRESSES = [*(entry["address"] for entry in seed()), "nobody@example.com", "o'hara@example.com"]


async def histories(settings: Settings) -> list[History | None]:
    async with open_customers(settings) as customers:
        return [await customers.history(address) for address in ADDRESSES]


async def test_workers_that_open_the_shop_at_once_see_the_seed_customers(farandole_settings: Settings) -> None:
    in_memory = SeedCustomers()
    expected = [await in_memory.history(address) for address in ADDRESSES]
    assert await asyncio.gather(*(histories(farandole_settings) for _ in range(4))) == [expected] * 4


async def test_opening_the_shop_again_leaves_what_was_changed(farandole_settings: Settings) -> None:
    address = "customer.one@example.com"
    async with open_customers(farandole_settings) as customers:
        with postgres.connect(farandole_settings) as connection:
            change = "UPDATE shop.customer SET name = %s WHERE address = %s"
            connection.execute(change, ("Customer One, renamed", address))
            try:
                async with open_customers(farandole_settings):
                    found = await customers.history(address)
            finally:
                connection.execute(change, ("Customer One", address))
    assert found and found.name == "Customer One, renamed"


async def test_a_database_that_is_away_is_an_outage(farandole_settings: Settings) -> None:
    away = farandole_settings.model_copy(update={"database_url": None})
    with pytest.raises(Exception, match="DATABASE_URL"):
        async with open_customers(away):
            pass
