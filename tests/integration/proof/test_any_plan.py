"""Any jobs, orders, batches, projectors and kills between any two statements: the tables are the fold in plain Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from farandole.settings import Settings
from tests.integration.proof.plans import Claim, Fold, Good, Plan, Prepare, Slot, plans
from tests.integration.proof.stage import PROVE, Stage, staged

#: Plans of an ordinary run: always the same ones, so that a red run is the change's doing.
ALWAYS = 20


#: Two events of a job that tie but for their ids; what is in partition 1 is the second projector's.
TIE = [Slot(job=0, kind=kind, run=0, hop=1, moment=0, attempt=1) for kind in (0, 1)]
ALL = frozenset(range(8))


@pytest.fixture
def stage(farandole_settings: Settings) -> Iterator[Stage]:
    with staged(farandole_settings) as ready:
        yield ready


@settings(
    max_examples=PROVE or ALWAYS,
    derandomize=not PROVE,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    print_blob=True,
)
@given(plan=plans())
@example(plan=Plan(TIE, [Good(0, 0), Good(1, 1)], 2, [Fold(0, 9), Fold(1, 9)]))
@example(plan=Plan(TIE, [Good(0, 0), Good(1, 1)], 2, [Fold(1, 9), Fold(0, 9)]))
@example(plan=Plan(TIE, [Good(0, 0), Good(1, 0)], 1, [Fold(0, 9)]))
@example(plan=Plan(TIE, [Good(0, 0), Good(0, 0)], 2, [Claim(1, ALL), Fold(1, 9), Fold(0, 1)]))
@example(
    plan=Plan(TIE, [Good(0, 0), Good(0, 0)], 2, [Prepare(0, 1), Claim(1, ALL), Fold(1, 9), Claim(0, ALL), Fold(0, 1)])
)
def test_any_plan_gives_the_tables_of_the_fold_in_plain_python(plan: Plan, stage: Stage) -> None:
    """Partitions move between projectors, zombies write on, records come twice, with other content or as no event at all,
    connections are cut at any message, refolds run beside: what must hold is looked at after every step."""
    stage.carry_out(plan)
