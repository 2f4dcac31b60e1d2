"""What models have cost, summed up from the table `usage`, and where today's budgets stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from farandole.models.configured import Budgets
from farandole.postgres import Connection, dict_row, psycopg, sql

_SQL = {
    name: (Path(__file__).parent / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    for name in ("costs", "budgets_now")
}

#: What costs can be summed by, and how that reads in SQL.
BY = {
    "day": "to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    "agent": "agent",
    "model": "model",
    "tenant": "tenant",
    "job": "trace_id",
}

#: Before the first migration nothing was spent.
_NOTHING_YET = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)


@dataclass(frozen=True, slots=True)
class Cost:
    """The calls of one group; `by` has its day, agent and so on, in the order asked for."""

    by: tuple[Any, ...]
    calls: int
    failed: int  #: of them: every outcome but an answer
    unpriced: int  #: of them: not in `micro_dollars`
    input_tokens: int  #: neither read from the cache nor written to it
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    micro_dollars: int


@dataclass(frozen=True, slots=True)
class Budget:
    """Where one budget stands; `limit` is None where none is set any more."""

    key: str
    spent: int  #: micro-dollars
    reserved: int  #: for calls under way, at their upper bound
    limit: int | None


def costs(
    connection: Connection[Any], by: Sequence[str], since: datetime, until: datetime, limit: int = 1000
) -> list[Cost]:
    """The costs from `since` to before `until`, one row a group. Raises KeyError for what they cannot be summed by."""
    columns = sql.SQL(", ").join(sql.SQL(BY[name]) for name in by)
    query = sql.SQL(_SQL["costs"]).format(columns=columns)
    try:
        rows = connection.execute(query, {"since": since, "until": until, "limit": limit}).fetchall()
    except _NOTHING_YET:
        return []
    return [Cost(tuple(row[: len(by)]), *row[len(by) :]) for row in rows]


def budgets(connection: Connection[Any], configured: Budgets) -> list[Budget]:
    """Today's budgets that were touched, the fullest first."""
    try:
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(_SQL["budgets_now"]).fetchall()
    except _NOTHING_YET:
        return []
    found = [Budget(row["key"], row["spent"], row["reserved"], _limit(row["key"], configured)) for row in rows]
    return [*found, *_untouched(configured, {budget.key for budget in found})]


def _untouched(configured: Budgets, touched: set[str]) -> list[Budget]:
    """Budgets of today of which nothing was spent; those of each agent or tenant only where it is named."""
    names = [("day", configured.day), *((f"agent/{name}", limit) for name, limit in configured.agents.items())]
    names += [(f"tenant/{name}", limit) for name, limit in configured.tenants.items()]
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    keyed = [(f"{name}/{today}", limit) for name, limit in names if limit is not None]
    return [Budget(key, 0, 0, limit) for key, limit in keyed if key not in touched]


def _limit(key: str, configured: Budgets) -> int | None:
    kind, _, name = key.rpartition("/")[0].partition("/")
    match kind:
        case "day":
            return configured.day
        case "agent":
            return configured.agents.get(name, configured.agent)
        case _:
            return configured.tenants.get(name, configured.tenant)
