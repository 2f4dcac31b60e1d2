"""Any jobs, orders, batches, projectors and kills between any two statements: the tables are the fold in plain Python."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from farandole import postgres
from farandole.settings import Settings
from tests import journeys
from tests.integration.projection_tables import prepare
from tests.integration.proof.crew import Crew
from tests.integration.proof.plans import Plan, plans
from tests.integration.proof.truth import Truth
from tests.integration.proof.world import CONSTRAINT, World

#: Plans. More with `make prove N=…`; without it each run has the same ones, so that a red run is this change's doing.
EXAMPLES = int(os.environ.get("FARANDOLE_PROVE", "0"))
ALWAYS = 40


@pytest.fixture
def stage(farandole_settings: Settings) -> Iterator[tuple[Settings, Crew, Truth]]:
    found = prepare(farandole_settings)
    with postgres.connect(farandole_settings) as database:
        database.execute(CONSTRAINT)
        crew = Crew(farandole_settings, found, journeys.schemas(farandole_settings))
        try:
            yield farandole_settings, crew, Truth(database)
        finally:
            crew.close()


@settings(
    max_examples=EXAMPLES or ALWAYS,
    derandomize=not EXAMPLES,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
    print_blob=True,
)
@given(plan=plans())
def test_any_plan_gives_the_tables_of_the_fold_in_plain_python(
    plan: Plan, stage: tuple[Settings, Crew, Truth]
) -> None:
    carry_out(plan, *stage)


def carry_out(plan: Plan, given: Settings, crew: Crew, truth: Truth) -> None:
    """Step by step, with a look after each; then to the end of the log, and all again from event_log."""
    world = World(given, plan.slots, plan.log)
    truth.begin(world)
    crew.begin(world, plan.projectors)
    try:
        for step in plan.steps:
            crew.do(step, truth.look)
            truth.look()
        crew.finish()
        truth.look(whole=True)
        crew.refold()
        truth.look(whole=True)
    finally:
        crew.end()
