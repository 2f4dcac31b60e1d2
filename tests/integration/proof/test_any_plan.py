"""Any jobs, orders, batches, projectors and kills between any two statements: the tables are the fold in plain Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from farandole.settings import Settings
from tests.integration.proof.plans import Plan, plans
from tests.integration.proof.stage import PROVE, Stage, staged

#: Plans of an ordinary run: always the same ones, so that a red run is the change's doing.
ALWAYS = 30


@pytest.fixture
def stage(farandole_settings: Settings) -> Iterator[Stage]:
    with staged(farandole_settings) as ready:
        yield ready


@settings(
    max_examples=PROVE or ALWAYS,
    derandomize=not PROVE,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
    print_blob=True,
)
@given(plan=plans())
@pytest.mark.timeout(300 + PROVE)
def test_any_plan_gives_the_tables_of_the_fold_in_plain_python(plan: Plan, stage: Stage) -> None:
    """Partitions move between projectors, zombies write on, records come twice, with other content or as no event at all,
    connections are cut at any message, refolds run beside: what must hold is looked at after every step."""
    stage.carry_out(plan)
