"""A model call that does not fit into its budget, told to a person."""

from __future__ import annotations

from farandole.errors import LONGEST
from farandole.models.configured import dollars
from farandole.steps.claims import OverBudget


class BudgetSpent(Exception):
    """Nothing was called. The agent's `over_budget` says whether the job fails or waits until the budget renews.

    `renews_in` are seconds until then; None: it never does.
    """

    def __init__(self, over: OverBudget) -> None:
        self.key = over.key
        never = over.renews_in is None or over.needed > over.limit  # a call that is too large stays so
        self.renews_in = None if never or over.renews_in is None else min(over.renews_in, LONGEST)
        super().__init__(
            f"budget {over.key}: {dollars(over.taken)} of {dollars(over.limit)} are spent or reserved, and the call may "
            f"cost up to {dollars(over.needed)}"
        )
