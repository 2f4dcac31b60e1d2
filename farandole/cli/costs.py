"""costs: what models have cost, by day, agent or model, with a chart for the eye, and where today's budgets stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from farandole.cli.console import cell, note, say, screen, show, show_json, table
from farandole.cli.contract import Json
from farandole.errors import ExitCode, FarandoleError

if TYPE_CHECKING:
    from farandole.costs import Budget, Cost

#: Characters of the longest bar.
BAR = 30
#: Columns that the figures beside it take, more or less; on a narrow terminal bars are shorter.
_BESIDE = 75


def costs(
    by: Annotated[str, typer.Option(help="What to sum by: day, agent, model, tenant, job, or two of them, as agent,model.")]
    = "day",
    since: Annotated[datetime | None, typer.Option(help="From this UTC day on; default: thirty days.", formats=["%Y-%m-%d"])]
    = None,
    until: Annotated[datetime | None, typer.Option(help="To the end of this UTC day.", formats=["%Y-%m-%d"])] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """What model calls have cost, every real call once, failed ones included, and today's budgets."""
    from farandole import costs as spending
    from farandole import postgres
    from farandole.settings import load_settings

    names = [name.strip() for name in by.split(",")]
    if not set(names) <= set(spending.BY) or not 1 <= len(set(names)) == len(names) <= 2:
        raise FarandoleError(f"--by {by}: expected one or two of {', '.join(spending.BY)}", ExitCode.USAGE)
    settings = load_settings()
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begin = (since or today - timedelta(days=30)).replace(tzinfo=UTC)
    end = (until or today).replace(tzinfo=UTC) + timedelta(days=1)
    if begin >= end:
        raise FarandoleError(
            f"--until {end - timedelta(days=1):%Y-%m-%d} is before --since {begin:%Y-%m-%d}", ExitCode.USAGE
        )
    with postgres.connect(settings, application="farandole costs") as connection:
        total, found = spending.costs(connection, names, begin, end)
        budgets = spending.budgets(connection, settings.budgets)
    if json:
        rows = [dict(zip(names, cost.by, strict=True)) | _without(asdict(cost), "by") for cost in found]
        limits = [asdict(budget) for budget in budgets]
        show_json({"costs": rows, "total": _without(asdict(total), "by"), "budgets": limits})
        return
    if not found:
        say(f"no model calls from {begin:%Y-%m-%d} to {end - timedelta(days=1):%Y-%m-%d}")
    else:
        _show(names, found)
        _sum(total, sum(cost.calls for cost in found))
    _show_budgets(budgets)


def _show(names: Sequence[str], found: Sequence[Cost]) -> None:
    from farandole.models.configured import dollars

    view = table(*names, "calls", "failed", "tokens in", "cached", "out", "cost", "")
    for column in view.columns[len(names) : -1]:
        column.justify = "right"
    most = max(cost.micro_dollars for cost in found) or 1
    console = screen()
    longest = max(5, min(BAR, console.width - _BESIDE))
    for cost in found:
        read = cost.input_tokens + cost.cache_read_tokens + cost.cache_write_tokens
        share = cost.cache_read_tokens / read if read else 0
        bar = ("#" if console.options.ascii_only else "█") * round(longest * cost.micro_dollars / most)
        view.add_row(
            *(cell(value) for value in cost.by),
            cell(f"{cost.calls:,}"),
            cell(f"{cost.failed:,}", "yellow" if cost.failed else "dim"),
            cell(f"{read:,}"),
            cell(f"{share:.0%}", "dim"),
            cell(f"{cost.output_tokens:,}"),
            cell(dollars(cost.micro_dollars) + ("+" if cost.unpriced else "")),
            cell(bar, "cyan"),
        )
    show(view)


def _sum(total: Cost, shown: int) -> None:
    from farandole.models.configured import dollars

    say(f"{total.calls:,} call{'s' * (total.calls != 1)}, {dollars(total.micro_dollars)}")
    if shown < total.calls:
        note(f"the rows above are of {shown:,} calls; --since and --until choose others", "yellow")
    if unpriced := total.unpriced:
        calls = "1 call is of a model" if unpriced == 1 else f"{unpriced:,} calls are of models"
        note(f"{calls} without a known price, and not in the sums (FARANDOLE_PRICES)", "yellow")


def _show_budgets(budgets: Sequence[Budget]) -> None:
    from farandole.models.configured import dollars

    if not budgets:
        return
    say("")
    view = table("budget", "spent", "reserved", "limit", "used")
    for column in view.columns[1:]:
        column.justify = "right"
    for budget in budgets:
        used = (budget.spent + budget.reserved) / budget.limit if budget.limit else None
        view.add_row(
            cell(budget.key),
            cell(dollars(budget.spent)),
            cell(dollars(budget.reserved)),
            cell(None if budget.limit is None else dollars(budget.limit)),
            cell(None if used is None else f"{used:.0%}", "yellow" if used and used > 0.8 else ""),
        )
    show(view)


def _without(row: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in row.items() if key != name}
