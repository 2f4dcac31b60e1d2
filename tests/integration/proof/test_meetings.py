"""Two projectors at work on the same jobs, one of them held at each of its messages in turn: nobody waits in a circle."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from farandole.settings import Settings
from tests.integration.proof.plans import Claim, Fold, Good, Lying, Meeting, Plan, Slot, Step
from tests.integration.proof.stage import Stage, staged
from tests.integration.proof.world import PLACES
from tests.wire import Way

#: Two jobs with two events each, of one topic.
SLOTS = [Slot(job, 1, 0, hop, 0, 1) for hop in (0, 1) for job in (0, 1)]
FIRST = frozenset(number for number, (_, partition) in enumerate(PLACES) if partition == 0)
SHARES: list[Step] = [Claim(0, FIRST), Claim(1, frozenset(range(len(PLACES))) - FIRST)]


@pytest.fixture
def stage(farandole_settings: Settings) -> Iterator[Stage]:
    with staged(farandole_settings) as ready:
        yield ready


def meet(stage: Stage, log: list[Lying]) -> None:
    """Partition 0 is folded by one projector, held at each of its messages, and partition 1 by the other meanwhile."""
    at = messages = 1
    while at <= messages:
        stage.begin(Plan(SLOTS, log, 2, []))
        for step in SHARES:
            stage.crew.do(step, stage.truth.look)
        stage.crew.do(Meeting(Fold(0, 10), at, Way.PASS, Fold(1, 10)), stage.truth.look)
        assert not any(member.interrupted for member in stage.crew.members), "one of them was broken off"
        stage.truth.look(whole=True)
        messages = stage.crew.asked(Fold(0, 10))
        at += 1
    assert messages > 5


def test_two_projectors_that_fold_two_jobs_crosswise_at_once_do_not_wait_in_a_circle(stage: Stage) -> None:
    """Case P5: (J1, J2) and (J2, J1)."""
    meet(stage, [Good(0, 0), Good(1, 0), Good(3, 1), Good(2, 1)])


def test_two_projectors_with_the_same_events_crosswise_at_once_count_them_once(stage: Stage) -> None:
    """Case P5: each has the other's events as duplicates."""
    meet(stage, [Good(0, 0), Good(1, 0), Good(1, 1), Good(0, 1)])


def test_a_batch_of_a_new_event_a_duplicate_and_another_new_one_counts_the_new_ones_once(stage: Stage) -> None:
    """Case P5: new J1, duplicate J0, another J1."""
    stage.begin(Plan(SLOTS, [Good(0, 1), Good(1, 0), Good(0, 0), Good(3, 0)], 2, []))
    for step in (*SHARES, Fold(1, 10), Fold(0, 10)):
        stage.crew.do(step, stage.truth.look)
        stage.truth.look()
    stage.truth.look(whole=True)
