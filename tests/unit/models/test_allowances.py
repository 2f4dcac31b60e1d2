"""Which budgets a call must fit into, and what a budget's dollars are."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from farandole.models.allowances import allowances
from farandole.models.configured import Budgets
from farandole.steps.claims import Allowance

JOB = "01890a5d-ac96-8b65-8a84-d00ed8b6d81e"


def found(budgets: dict[str, Any], tenant: str | None = "ann", agent: str = "act") -> list[tuple[str, int, bool]]:
    rows = allowances(Budgets(**budgets), trace_id=JOB, agent=agent, tenant=tenant)
    assert all(isinstance(row, Allowance) for row in rows)
    return [(row.key, row.limit, row.daily) for row in rows]


def test_without_budgets_a_call_is_bound_by_none() -> None:
    assert found({}) == []


def test_a_call_must_fit_into_all_of_its_budgets_in_the_order_of_their_keys() -> None:
    assert found({"job": 0.05, "day": 20, "agent": 5, "tenant": 1}) == [
        ("agent/act", 5_000_000, True),
        ("day", 20_000_000, True),
        (f"job/{JOB}", 50_000, False),
        ("tenant/ann", 1_000_000, True),
    ]


def test_what_is_said_of_one_agent_or_tenant_wins_over_what_is_said_of_all() -> None:
    budgets: dict[str, Any] = {"agent": 5, "agents": {"act": 0.5, "other": 9}, "tenants": {"ann": 0}}
    assert found(budgets) == [("agent/act", 500_000, True), ("tenant/ann", 0, True)]
    assert found(budgets, agent="classify", tenant="bob") == [("agent/classify", 5_000_000, True)]


def test_a_job_without_a_tenant_has_no_budget_of_one() -> None:
    assert found({"tenants": {"None": 1}}, tenant=None) == []
    assert found({"day": 1}, tenant=None) == [("day", 1_000_000, True)]


@pytest.mark.parametrize(
    ("dollars", "micro"),
    [(2.5, 2_500_000), ("0.1", 100_000), (0.29, 290_000), ("0.0000019", 1), (0, 0), (3, 3_000_000)],
)
def test_dollars_are_micro_dollars_never_more_than_was_said(dollars: object, micro: int) -> None:
    assert Budgets.model_validate({"day": dollars}).day == micro


@pytest.mark.parametrize("dollars", [-1, "much", True, float("inf"), float("nan"), [1]])
def test_what_is_no_amount_is_refused(dollars: object) -> None:
    with pytest.raises(ValidationError, match="expected dollars"):
        Budgets.model_validate({"day": dollars})
