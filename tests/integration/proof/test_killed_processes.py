"""Two projectors, processes of their own, are killed at random moments while events flow: nothing is lost, nothing doubled."""

from __future__ import annotations

import itertools
import os
import random
import time
from contextlib import ExitStack
from pathlib import Path

from farandole import postgres
from farandole.settings import Settings
from tests.commands import Command, running
from tests.eventually import eventually
from tests.integration.projection_service import make_topics
from tests.integration.projection_tables import one, prepare
from tests.integration.proof.stage import PROVE
from tests.integration.proof.traffic import EVENTS, Traffic
from tests.journeys import facts

#: Each is noticed by the group after its shortest session, six seconds.
KILLS = max(2, PROVE // 20)
#: Jobs of one piece of traffic; between two kills there are several.
JOBS = 40
MORE = {"FARANDOLE_SESSION_TIMEOUT_MS": "6000", "FARANDOLE_BATCH": "20"}
OWNERS = "SELECT count(DISTINCT owner) FROM projector_offset"


class Pair:
    """Two projectors; who is killed is started again."""

    def __init__(self, settings: Settings, folder: Path, stack: ExitStack) -> None:
        self._settings, self._folder = settings, folder
        self._names = (f"projector-{number}.log" for number in itertools.count(1))
        self._running: list[Command] = []
        self._stack = stack

    def start(self) -> None:
        log = self._folder / next(self._names)
        self._running.append(self._stack.enter_context(running(self._settings, log, "projector", more=MORE)))

    def kill(self, chance: random.Random) -> None:
        self._running.pop(chance.randrange(len(self._running))).kill()

    def stop(self) -> list[int]:
        return [command.stop() for command in self._running]


def test_two_projectors_that_are_killed_again_and_again_lose_and_double_nothing(
    farandole_settings: Settings, tmp_path: Path
) -> None:
    seed = int(os.environ.get("TEST_SEED") or time.time())
    print(f"TEST_SEED={seed} repeats the choices of this run")
    chance, seeds = random.Random(seed), itertools.count(1000 * (seed % 1000))
    make_topics(farandole_settings)
    prepare(farandole_settings)
    traffic = Traffic(farandole_settings)
    with ExitStack() as stack, postgres.connect(farandole_settings) as database:
        pair = Pair(farandole_settings, tmp_path, stack)
        for count in (1, 2):
            pair.start()
            eventually(lambda count=count: one(database, OWNERS) == count)  # type: ignore[misc]
        for _ in range(KILLS):
            for _ in range(4):
                traffic.send(facts(next(seeds), JOBS))
            goal = one(database, EVENTS) + chance.randrange(JOBS * 8)
            eventually(lambda goal=goal: one(database, EVENTS) >= goal or traffic.folded(database))  # type: ignore[misc]
            pair.kill(chance)
            pair.start()
        traffic.send(facts(next(seeds), JOBS))
        eventually(lambda: traffic.folded(database), seconds=90)
        assert pair.stop() == [0, 0]
        traffic.must_be_all(database)
