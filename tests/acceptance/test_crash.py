"""Processes are killed, services stop and come back: nothing is lost, nothing doubled, everything goes on by itself."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farandole.stack.service import Service
from farandole.stack.stack import Stack
from farandole.stack.status import Endpoints
from tests.acceptance import picture
from tests.acceptance.checker import TRIAGE, complaints
from tests.acceptance.mails import mails
from tests.acceptance.triage import AGENTS, EVERYONE, PROJECTOR, Triage, triage
from tests.acceptance.watch import Watch
from tests.eventually import eventually

EVENT_TOPICS = ("jobs.submitted", *(f"jobs.{stage}" for stage in ("classified", "enriched", "acted", "done", "failed")))
KILLS, JOBS = 10, 1000


def written(system: Triage) -> int:
    """How far the log has grown, by its offsets."""
    return sum(picture.ends(system.log, EVENT_TOPICS).values())


def test_ten_kills_while_a_thousand_jobs_flow_lose_nothing_and_double_nothing(
    farandole_stack: Endpoints, tmp_path: Path
) -> None:
    seed = int(os.environ.get("TEST_SEED") or time.time())
    print(f"TEST_SEED={seed} repeats the choices of this run")
    chance, source = random.Random(seed), mails()
    settings = {"FARANDOLE_BATCH": "20", "FARANDOLE_SESSION_TIMEOUT_MS": "6000"}
    with triage(farandole_stack, tmp_path, **settings) as system, system.connect() as database:
        system.ready()
        with Watch(system.log, database, TRIAGE) as watch:
            jobs: list[str] = []
            for _ in range(KILLS):
                jobs += system.submit(itertools.islice(source, JOBS // KILLS))
                goal = written(system) + chance.randint(1, 3 * JOBS // KILLS)
                eventually(lambda goal=goal: written(system) >= goal, f"log at {goal}; {system.last_words()}", 60)  # type: ignore[misc]
                victim = chance.choice((*EVERYONE, PROJECTOR))
                print(f"kill {victim} at {written(system)}")
                system.kill(victim)
                system.start(victim)
            system.settle(jobs, 120)
            assert complaints(system.picture()) == []
            assert watch.complaints(database) == []
            assert watch.looks > len(AGENTS)
        assert len(set(jobs)) == JOBS
        assert system.rows("SELECT count(*), count(*) FILTER (WHERE events = 5) FROM job_state") == [(JOBS, JOBS)]
        assert system.rows("SELECT count(*) FROM conflict") == [(0,)]


SERVICES = ["postgres", "kafka"]


@pytest.fixture(scope="module")
def fragile(farandole_private_stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Triage]:
    """A system on services that a test may stop."""
    folder = tmp_path_factory.mktemp("outages")
    with triage(farandole_private_stack.endpoints, folder, FARANDOLE_BATCH="5") as system:
        system.ready()
        yield system


@pytest.mark.parametrize("name", SERVICES)
def test_while_a_service_is_away_everyone_waits_and_then_goes_on_by_itself(
    name: str, fragile: Triage, farandole_outages: Stack
) -> None:
    """Stopped first, and killed as soon as the jobs flow again."""
    service: Service = getattr(farandole_outages, name)
    processes = {who: command.process.pid for who, command in fragile.running.items()}
    submitted: list[Any] = []
    for way in ("stop", "kill"):
        before, outages = written(fragile), heard(fragile)
        submitted += fragile.submit((f"{name} {way} {key}", mail) for key, mail in itertools.islice(mails(), 60))
        eventually(lambda before=before: written(fragile) > before + 150, f"the jobs flow; {fragile.last_words()}", 60)  # type: ignore[misc]
        getattr(service, way)()
        said = f"somebody says that {name} is away; {fragile.last_words()}"
        eventually(lambda outages=outages: heard(fragile) > outages, said, 60)  # type: ignore[misc]
        service.start()
    submitted += fragile.submit((f"{name} later {key}", mail) for key, mail in itertools.islice(mails(), 20))
    fragile.settle(submitted, 180)
    assert complaints(fragile.picture()) == []
    assert {who: command.process.pid for who, command in fragile.running.items()} == processes
    fragile.alive()


def heard(system: Triage) -> int:
    """How often somebody complained of an outage."""
    words = ("outage", "waiting seconds=", "commit_failed", "broker:")
    return sum(command.output().count(word) for command in system.running.values() for word in words)
