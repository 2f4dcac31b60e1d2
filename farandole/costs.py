"""What models have cost, summed up from the table `usage`, and where today's budgets stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
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
) -> tuple[Cost, list[Cost]]:
    """The costs from `since` to before `until`: of all together, and one row a group, at most `limit`. Jobs come with the
    dearest first, all others in their order. Raises KeyError for what they cannot be summed by."""
    columns = sql.SQL(", ").join(sql.SQL(BY[name]) for name in by)
    order = sql.SQL("micro_dollars DESC, ") + columns if by[0] == "job" else columns
    query = sql.SQL(_SQL["costs"]).format(columns=columns, order=order)
    try:
        rows = connection.execute(query, {"since": since, "until": until, "limit": limit + 1}).fetchall()
    except _NOTHING_YET:
        return Cost((), 0, 0, 0, 0, 0, 0, 0, 0), []
    total, *found = [Cost(tuple(row[: len(by)]), *row[len(by) :]) for row in rows]
    return replace(total, by=()), found


def budgets(connection: Connection[Any], configured: Budgets) -> list[Budget]:
    """Today's budgets: those that were touched, the fullest first, then those that are set by name."""
    try:
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(_SQL["budgets_now"]).fetchall()
    except _NOTHING_YET:
        return []
    spent = {row["key"]: (row["spent"], row["reserved"]) for row in rows if row["key"]}
    named = [*(f"agent/{name}" for name in configured.agents), *(f"tenant/{name}" for name in configured.tenants)]
    for name in ["day", *named] if configured.day is not None else named:
        spent.setdefault(f"{name}/{rows[0]['day']}", (0, 0))
    return [Budget(key, *amounts, _limit(key, configured)) for key, amounts in spent.items()]


def _limit(key: str, configured: Budgets) -> int | None:
    kind, _, name = key.rpartition("/")[0].partition("/")
    match kind:
        case "day":
            return configured.day
        case "agent":
            return configured.agents.get(name, configured.agent)
        case _:
            return configured.tenants.get(name, configured.tenant)
