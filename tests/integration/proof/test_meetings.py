"""Two projectors at work on the same jobs, one of them held at each of its messages in turn: nobody waits in a circle."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from farandole import postgres
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.proof.plans import Claim, Fold, Good, Lying, Meeting, Plan, Refold, Slot, Step
from tests.integration.proof.stage import PROVE, Stage, staged
from tests.integration.proof.world import PLACES, trace_of
from tests.wire import Way

#: Two jobs with two events each, of one topic.
SLOTS = [Slot(job, 1, 0, hop, 0, 1) for hop in (0, 1) for job in (0, 1)]
#: Two that exist; then in one batch the first job's event is the earlier one, and in the other the second's.
CROSSWISE = [*(Slot(job, 1, 0, 0, 0, 1) for job in (0, 1)), *(Slot(job, 1, 0, 1, job, 1) for job in (0, 1))]
CROSSWISE += [Slot(job, 1, 0, 2, 1 - job, 1) for job in (0, 1)]
FIRST = frozenset(number for number, (_, partition) in enumerate(PLACES) if partition == 0)
LOG: list[Lying] = [Good(0, 0), Good(1, 0), Good(3, 1), Good(1, 1)]
SHARES: list[Step] = [Claim(0, FIRST), Claim(1, frozenset(range(len(PLACES))) - FIRST)]


@pytest.fixture
def stage(farandole_settings: Settings) -> Iterator[Stage]:
    with staged(farandole_settings) as ready:
        yield ready


def meet(stage: Stage, log: list[Lying], first: Step, second: Step, some: int = 0) -> None:
    """`first` is held at each of its messages (or at about `some` of them) while `second` runs."""
    at, every, messages = 1, 1, 1
    while at <= messages:
        stage.begin(Plan(SLOTS, log, 2, []))
        for step in SHARES:
            stage.crew.do(step, stage.truth.glance)
        stage.crew.do(Meeting(first, at, Way.PASS, second), stage.truth.glance)
        assert not any(member.interrupted for member in stage.crew.members), "one of them was broken off"
        stage.truth.look()
        messages = stage.crew.asked(first)
        every = every if PROVE or not some else max(1, messages // some)
        stage.catch_up()
        at += every
    assert messages > 5


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("job", [0, 1])
def test_two_projectors_that_fold_two_jobs_crosswise_at_once_do_not_wait_in_a_circle(
    first: int, job: int, stage: Stage
) -> None:
    """Case P5: (J1, J2) and (J2, J1). Both have begun, and wait for a row that somebody else holds, when that one lets go."""
    steps = [Fold(first, 10), Fold(1 - first, 10)]
    stage.begin(Plan(CROSSWISE, [Good(0, 0), Good(1, 0), Good(2, 0), Good(3, 0), Good(4, 1), Good(5, 1)], 2, []))
    for step in (*SHARES, Fold(0, 2)):
        stage.crew.do(step, stage.truth.glance)
    with ThreadPoolExecutor(2) as pool, postgres.connect(stage.settings) as other:
        with other.transaction():
            other.execute("SELECT FROM job WHERE trace_id = %s FOR UPDATE", (trace_of(job),))
            folding = []
            for step in steps:
                folding.append(pool.submit(stage.crew.do, step, stage.truth.glance))
                eventually(lambda step=step: stage.crew.waits(step))  # type: ignore[misc]
        for future in folding:
            future.result(30)
    assert not any(member.interrupted for member in stage.crew.members), "one of them was broken off"
    stage.truth.look(whole=True)


def test_two_projectors_with_the_same_events_crosswise_at_once_count_them_once(stage: Stage) -> None:
    """Case P5: each has the other's events as duplicates."""
    meet(stage, [Good(0, 0), Good(1, 0), Good(1, 1), Good(0, 1)], Fold(0, 10), Fold(1, 10))


def test_a_projector_that_stands_still_in_its_batch_is_waited_for_or_refused(stage: Stage) -> None:
    """Case K6, for projectors: its partitions are claimed by another one meanwhile."""
    meet(stage, [Good(0, 0), Good(1, 0)], Fold(0, 10), Claim(1, FIRST), some=8)


def test_a_refold_that_stands_still_anywhere_misses_no_batch_and_counts_none_twice(stage: Stage) -> None:
    meet(stage, LOG, Refold(), Fold(0, 10), some=6)


def test_a_batch_that_stands_still_anywhere_is_in_the_refold_that_runs_meanwhile(stage: Stage) -> None:
    meet(stage, LOG, Fold(0, 10), Refold(), some=6)


def test_a_batch_of_a_new_event_a_duplicate_and_another_new_one_counts_the_new_ones_once(stage: Stage) -> None:
    """Case P5: new J1, duplicate J0, another J1."""
    stage.begin(Plan(SLOTS, [Good(0, 1), Good(1, 0), Good(0, 0), Good(3, 0)], 2, []))
    for step in (*SHARES, Fold(1, 10), Fold(0, 10)):
        stage.crew.do(step, stage.truth.glance)
        stage.truth.look()
    stage.truth.look(whole=True)
