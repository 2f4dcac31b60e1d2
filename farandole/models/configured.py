"""What a project says of models in its settings: which ones, how fast, and for how much money."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

#: Micro-dollars in a dollar: money is counted in these, as integers.
MICRO = 1_000_000


def dollars(micro: int) -> str:
    """Micro-dollars as text.

    >>> dollars(1_250_000), dollars(42)
    ('$1.25', '$0.000042')
    """
    text = f"{micro / MICRO:.6f}".rstrip("0")
    whole, _, part = text.partition(".")
    return f"${whole}.{part:0<2}"


def _micro_dollars(dollars: object) -> object:
    """Dollars (a number, or text such as "2.50") as micro-dollars, rounded down: a budget is never more than was said."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float | str):
        raise ValueError("expected dollars, such as 2.5")
    try:
        found = Decimal(str(dollars)) * MICRO
    except ArithmeticError:
        raise ValueError("expected dollars, such as 2.5") from None
    if not found.is_finite() or found < 0:
        raise ValueError("expected dollars, 0 or more")
    return int(found)


def _dollars(micro: int) -> str:
    return str(Decimal(micro) / MICRO)


MicroDollars = Annotated[
    int, BeforeValidator(_micro_dollars), PlainSerializer(_dollars, return_type=str, when_used="json")
]

_CONFIG = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Budgets(BaseModel):
    """Dollars that may be spent on models, counted as micro-dollars; a day is a UTC day. None: no limit."""

    model_config = _CONFIG

    job: MicroDollars | None = Field(None, description="a job, over all its agents and runs")
    day: MicroDollars | None = Field(None, description="a day, over everything")
    agent: MicroDollars | None = Field(None, description="an agent and day, unless it is among `agents`")
    tenant: MicroDollars | None = Field(None, description="a tenant and day, unless it is among `tenants`")
    agents: dict[str, MicroDollars] = Field({}, description="an agent and day, by its name")
    tenants: dict[str, MicroDollars] = Field({}, description="a tenant and day, by its name")


class Limit(BaseModel):
    """How fast one model may be called, by all workers of all agents together. None: no limit of ours."""

    model_config = _CONFIG

    requests: int | None = Field(None, ge=1, description="a minute")
    input_tokens: int | None = Field(None, ge=1, description="a minute; those read from the cache do not count")
    output_tokens: int | None = Field(None, ge=1, description="a minute")
    concurrency: int | None = Field(None, ge=1, description="calls under way at once, in one process")
