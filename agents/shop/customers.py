"""Who is a customer? From Postgres for a worker, from the seed file for a test; both answer alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from psycopg_pool import AsyncConnectionPool

from farandole import postgres
from farandole.settings import Settings
from schemas.jobs import History, Order

_HERE = Path(__file__).parent
_HISTORY = (_HERE / "history.sql").read_text(encoding="utf-8")

#: Connections of one worker; a look-up takes a millisecond, so few serve a hundred handlings in flight.
CONNECTIONS = 4


class Customers(Protocol):
    """What `enrich` asks."""

    async def history(self, address: str) -> History | None:
        """The customer with this e-mail address (in lower case), or None."""
        ...


class SeedCustomers:
    """The customers of the seed file, in memory: for tests, and for a look at the rules without a database."""

    def __init__(self) -> None:
        self._customers = {entry["address"]: _history(entry, entry["since"]) for entry in seed()}

    async def history(self, address: str) -> History | None:
        return self._customers.get(address)


class PostgresCustomers:
    """The customers of the shop's database."""

    def __init__(self, pool: AsyncConnectionPool[postgres.AsyncConnection[Any]]) -> None:
        self._pool = pool

    async def history(self, address: str) -> History | None:
        async with self._pool.connection() as connection:
            cursor = await connection.cursor(row_factory=postgres.dict_row).execute(_HISTORY, (address,))
            row = await cursor.fetchone()
        return _history(row, row["customer_since"]) if row else None


@asynccontextmanager
async def open_customers(settings: Settings) -> AsyncIterator[Customers]:
    """The shop of `settings.database_url`, its tables made and seeded where they are missing."""
    await asyncio.to_thread(_make_tables, settings)
    pool = AsyncConnectionPool(
        settings.database, min_size=1, max_size=CONNECTIONS, open=False, timeout=postgres.ANSWER,
        kwargs={"autocommit": True, "application_name": "farandole shop"},
    )  # fmt: skip
    async with pool:
        yield PostgresCustomers(pool)


def seed() -> list[dict[str, Any]]:
    """The seed file's customers, each with its orders."""
    found: list[dict[str, Any]] = json.loads((_HERE / "seed.json").read_text(encoding="utf-8"))
    return found


def _make_tables(settings: Settings) -> None:
    """Under a lock, for several workers start at once and `CREATE … IF NOT EXISTS` alone collides with itself."""
    with (
        postgres.connect(settings, application="farandole shop") as connection,
        postgres.advisory_lock(connection, "shop"),
        connection.transaction(),
    ):
        connection.execute(postgres.script((_HERE / "shop.sql").read_text(encoding="utf-8")))
        text = postgres.script((_HERE / "seed.sql").read_text(encoding="utf-8"))
        connection.execute(text, {"customers": postgres.Jsonb(seed())})


def _history(entry: dict[str, Any], since: Any) -> History:
    orders = sorted(entry["orders"], key=lambda order: (order["placed_on"], order["number"]), reverse=True)
    return History(name=entry["name"], customer_since=since, orders=[Order(**order) for order in orders[:10]])
