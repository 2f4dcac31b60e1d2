"""Where plans are carried out: a namespace with its projectors and whoever looks at it, used for one plan after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from farandole import postgres
from farandole.settings import Settings
from tests import journeys
from tests.integration.projection_tables import prepare
from tests.integration.proof.crew import Crew
from tests.integration.proof.plans import Plan
from tests.integration.proof.truth import Truth
from tests.integration.proof.world import CONSTRAINT, World

#: How much is to be tried: 0 in an ordinary run, plans of the property test with `make prove N=…`.
PROVE = int(os.environ.get("PROVE") or 0)


@dataclass(frozen=True, slots=True)
class Stage:
    """Nothing is left of a plan when the next one begins."""

    settings: Settings
    crew: Crew
    truth: Truth

    def begin(self, plan: Plan) -> None:
        world = World(self.settings, plan.slots, plan.log)
        self.truth.begin(world)
        self.crew.begin(world, plan.projectors)

    def carry_out(self, plan: Plan) -> None:
        """Step by step, with a look after each; then to the end of the log, and all again from event_log."""
        try:
            self.begin(plan)
            for step in plan.steps:
                self.crew.do(step, self.truth.glance)
                self.truth.look()
            self.finish()
        except BaseException:
            self.crew.renew()
            raise

    def catch_up(self) -> None:
        """To the end of the log."""
        self.crew.finish()
        self.truth.look(whole=True)

    def finish(self) -> None:
        self.catch_up()
        self.crew.refold()
        self.truth.look(whole=True)


@contextmanager
def staged(settings: Settings) -> Iterator[Stage]:
    """A stage in the test's namespace."""
    found = prepare(settings)
    with postgres.connect(settings) as database:
        database.execute(CONSTRAINT)
        crew = Crew(settings, found, journeys.schemas(settings))
        try:
            yield Stage(settings, crew, Truth(database))
        finally:
            crew.close()
