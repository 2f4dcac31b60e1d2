"""One batch with everything in it, and one refold, cut at each message of theirs in turn: all of it happened, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from farandole.settings import Settings
from tests.integration.proof.plans import Bad, Claim, Cut, Fold, Good, Hole, Lying, Plan, Refold, Release, Slot, Step
from tests.integration.proof.stage import PROVE, Stage, staged
from tests.integration.proof.world import PLACES
from tests.wire import Way

#: Two jobs: one is done before a late event, the other fails, is blocked and begins anew.
SLOTS = [
    Slot(job=0, kind=0, run=0, hop=0, moment=0, attempt=1),
    Slot(job=0, kind=1, run=0, hop=1, moment=0, attempt=2),
    Slot(job=0, kind=4, run=0, hop=3, moment=0, attempt=1),
    Slot(job=1, kind=1, run=0, hop=1, moment=1, attempt=1),
    Slot(job=1, kind=3, run=0, hop=2, moment=1, attempt=1),
    Slot(job=1, kind=5, run=0, hop=2, moment=1, attempt=1),
    Slot(job=1, kind=2, run=1, hop=1, moment=0, attempt=1),
]
#: What the other projector has folded before (partition 1), and what is folded in one batch (partition 0).
LOG: list[Lying] = [
    *(Good(slot, 1) for slot in (2, 0, 3)),
    *(Good(slot, 0) for slot in (2, 1)),
    Bad(topic=1, partition=0, job=0),
    Good(0, 0, text=1),
    Bad(topic=3, partition=0, job=1, refused=True),
    *(Good(slot, 0) for slot in (6, 5, 4, 3)),
    Good(4, 0, text=1),
    Good(4, 0),
    Good(1, 0, late=True),
    Hole(topic=2, partition=0),
]
MINE = frozenset(number for number, (_, partition) in enumerate(PLACES) if partition == 0)
OTHERS = frozenset(range(len(PLACES))) - MINE
BEFORE: list[Step] = [Claim(0, MINE), Claim(1, OTHERS), Fold(1, 10)]
BATCH = Fold(0, 100)
REST: dict[str, Refold | Claim | Release] = {
    "refold": Refold(),
    "claim": Claim(0, OTHERS),
    "release": Release(1),
}

#: The third is one of both others, as chance has it.
WAYS = (Way.BEFORE, Way.ANSWERED, Way.AFTER)

#: Cuts of a step that is no batch, in an ordinary run, spread over all of its messages.
SOME = 12


@pytest.fixture
def stage(farandole_settings: Settings) -> Iterator[Stage]:
    with staged(farandole_settings) as ready:
        yield ready


def begin(stage: Stage) -> None:
    stage.begin(Plan(SLOTS, LOG, 2, []))
    for step in BEFORE:
        stage.crew.do(step, stage.truth.glance)


def messages(stage: Stage, step: Step) -> int:
    """How many a step takes that is left alone."""
    begin(stage)
    stage.crew.do(step, stage.truth.glance)
    stage.truth.look()
    return stage.crew.asked(step)


def test_a_batch_cut_at_any_message_is_written_whole_or_not_at_all_and_then_gone_on_with(stage: Stage) -> None:
    count = messages(stage, BATCH)
    assert count > 25
    written = {way: [_cut(stage, Cut(at, way, at % 3 == 0)) for at in _points(count, way)] for way in WAYS}
    for way, outcomes in written.items():
        assert outcomes == sorted(outcomes), f"{way}: written, though cut before its end"
    assert not written[Way.BEFORE][0] and written[Way.ANSWERED][-1]


def _points(count: int, way: Way) -> list[int]:
    """In an ordinary run every second message, by turns in the two ways that are not left to chance; the last ones in all."""
    every = range(1, count + 1)
    if PROVE:
        return [*every]
    return [at for at in every if at > count - 3 or (at % 4 < 2 and WAYS[at % 4] is way)]


def _cut(stage: Stage, cut: Cut) -> bool:
    """Whether the batch was written."""
    begin(stage)
    stage.truth.look()
    before = stage.truth.folded
    stage.crew.do(replace(BATCH, cut=cut), stage.truth.glance)
    stage.truth.look()
    after = stage.truth.folded
    if PROVE:
        stage.finish()
    stage.crew.do(BATCH, stage.truth.glance)
    stage.truth.look(whole=True)
    return after > before


@pytest.mark.parametrize("name", REST)
def test_what_else_is_cut_at_any_message_changes_no_table(name: str, stage: Stage) -> None:
    step = REST[name]
    count = messages(stage, step)
    for at in range(1, count + 1, 1 if PROVE else max(1, count // SOME)):
        begin(stage)
        stage.crew.do(replace(step, cut=Cut(at, WAYS[at % 3], killed=False)), stage.truth.glance)
        stage.truth.look()
        stage.crew.do(BATCH, stage.truth.glance)
        stage.finish()
