"""Which budgets a model call must fit into."""

from __future__ import annotations

from farandole.models.configured import Budgets
from farandole.steps.claims import Allowance


def allowances(budgets: Budgets, *, trace_id: str, agent: str, tenant: str | None) -> tuple[Allowance, ...]:
    """The budgets of a call, in the order of their keys; a day is added to a key by the database's clock.

    >>> allowances(Budgets(day=2, agents={"act": 1}), trace_id="0189…", agent="act", tenant=None)
    (Allowance(key='agent/act', limit=1000000, daily=True), Allowance(key='day', limit=2000000, daily=True))
    """
    found = [
        ("agent/" + agent, budgets.agents.get(agent, budgets.agent), True),
        ("day", budgets.day, True),
        ("job/" + trace_id, budgets.job, False),
    ]
    if tenant is not None:
        found.append(("tenant/" + tenant, budgets.tenants.get(tenant, budgets.tenant), True))
    return tuple(Allowance(key, limit, daily) for key, limit, daily in sorted(found) if limit is not None)
