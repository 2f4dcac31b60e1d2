"""The tracker beside a model that remembers every record, and the text that is committed beside a position."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from farandole.worker import positions
from farandole.worker.positions import MAX_BYTES, Note, Unreadable, decode, encode
from farandole.worker.tracker import MOST, Tracker

#: Kafka takes 4,095 and the client adds one.
KAFKAS_LIMIT = 4_094


def spread(ranges: Any) -> set[int]:
    return {offset for first, end in ranges for offset in range(first, end)}


class TrackerBesideModel(RuleBasedStateMachine):
    """A log with holes (markers), records taken in order and finished in any, the worker killed at any moment: it starts
    again from what it committed last, text and all. No record is handled again that was committed, none is left out."""

    @initialize(start=st.integers(0, 1000), gaps=st.lists(st.integers(0, 2), min_size=1, max_size=60))
    def begin(self, start: int, gaps: list[int]) -> None:
        self.start = start
        self.log: list[int] = []
        at = start
        for gap in gaps:
            at += gap
            self.log.append(at)
            at += 1
        self.ending = at + 1  # a marker closes it
        self.committed_done: set[int] = set()  # finished, and known so by a commit
        self.committed = encode(Note("a.0", "t"), start)
        self.committed_at = start
        self.reassign()

    @rule()
    def reassign(self) -> None:
        """Killed, or the partition came back: only what was committed is known."""
        self.tracker = Tracker(self.committed_at, decode(self.committed, self.committed_at).beyond)
        self.open: set[int] = set()
        self.done: set[int] = set(self.committed_done)
        self.coming = [offset for offset in self.log if offset >= self.committed_at]

    @precondition(lambda self: self.coming)
    @rule()
    def take(self) -> None:
        offset = self.coming.pop(0)
        fresh = self.tracker.take(offset)
        assert fresh == (offset not in self.committed_done), "committed records are skipped, others never"
        if fresh:
            self.open.add(offset)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def finish(self, data: Any) -> None:
        offset = data.draw(st.sampled_from(sorted(self.open)))
        self.open.remove(offset)
        self.done.add(offset)
        self.tracker.finish(offset)

    @precondition(lambda self: not self.coming)
    @rule()
    def reach_the_end(self) -> None:
        self.tracker.pass_to(self.ending)

    @rule(offset=st.integers(0, 1200))
    def come_again(self, offset: int) -> None:
        if offset < self.tracker.end:
            before = self.tracker.position, self.tracker.beyond()
            assert not self.tracker.take(offset)
            assert (self.tracker.position, self.tracker.beyond()) == before

    @rule()
    def commit(self) -> None:
        self.committed_at = self.tracker.position
        self.committed = encode(Note("a.0", "t", self.tracker.beyond()), self.committed_at)
        self.committed_done = set(self.done)

    @invariant()
    def the_position_and_what_lies_beyond_say_exactly_what_is_finished(self) -> None:
        if not hasattr(self, "tracker"):
            return
        position, beyond = self.tracker.position, spread(self.tracker.beyond())
        assert all(offset >= position for offset in beyond)
        for offset in self.log:
            finished = offset < position or offset in beyond
            assert finished == (offset in self.done), offset
        assert self.tracker.unfinished == len(self.open)


TestTracker = TrackerBesideModel.TestCase
TestTracker.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def test_the_next_record_is_itself_in_the_list_and_stays_there() -> None:
    """The mistake that doubled one record in six thousand: after a recovery the position stands at a listed offset."""
    tracker = Tracker(4, [(5, 7)])
    tracker.take(4)
    tracker.finish(4)
    assert (tracker.position, tracker.beyond()) == (5, [(5, 7)])
    assert not tracker.take(5)
    assert (tracker.position, tracker.beyond()) == (6, [(6, 7)])


def test_the_position_never_passes_what_has_not_come() -> None:
    """The mistake that lost six records: a position at the end of the recovered list, over records not delivered yet."""
    tracker = Tracker(0, [(10, 20)])
    assert tracker.position == 0
    tracker.take(0)
    tracker.finish(0)
    assert tracker.position == 1


@given(
    position=st.integers(0, 2**40),
    pieces=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), max_size=80),
    owner=st.from_regex(r"[a-z_.0-9]{1,40}", fullmatch=True),
)
def test_what_is_encoded_is_what_is_decoded(position: int, pieces: list[tuple[int, int]], owner: str) -> None:
    beyond, at = [], position
    for gap, length in pieces:
        beyond.append((at + gap, at + gap + length))
        at += gap + length
    text = encode(Note(owner, "t.1", beyond), position)
    assert decode(text, position) == Note(owner, "t.1", beyond)
    assert len(text) <= KAFKAS_LIMIT
    assert text.isascii()


@settings(deadline=None, max_examples=60)
@given(position=st.integers(0, 2**50), steps=st.integers(1, 9000), chance=st.randoms(use_true_random=False))
def test_whatever_was_found_to_fit_can_be_encoded(position: int, steps: int, chance: Any) -> None:
    """Records are taken while they fit and finished in a random order, head last: the worst there is."""
    tracker, offset, taken = Tracker(position), position, []
    for _ in range(steps):
        offset += chance.choice((1, 1, 1, 2, 3, 90))
        if not tracker.fits(offset):
            break
        tracker.take(offset)
        taken.append(offset)
    rest = taken[1:]
    chance.shuffle(rest)
    for one in rest[: len(rest) // 2]:
        tracker.finish(one)
    text = encode(
        Note("n" * 31 + "." + "a" * 40 + ".255", "0123456789ab.1234567890", tracker.beyond()), tracker.position
    )
    assert len(text) <= KAFKAS_LIMIT


def test_a_hanging_head_lets_a_long_row_finish_behind_it_but_no_endless_one() -> None:
    tracker = Tracker(0)
    tracker.take(0)
    for offset in range(1, MOST):
        assert tracker.fits(offset)
        tracker.take(offset)
        tracker.finish(offset)
    assert tracker.beyond() == [(1, MOST)]
    assert not tracker.fits(MOST)
    tracker.finish(0)
    assert tracker.fits(MOST)


def test_too_many_holes_do_not_fit() -> None:
    tracker = Tracker(0)
    taken = 0
    while tracker.fits(taken):
        tracker.take(taken)
        taken += 1
    assert taken == 8 * MAX_BYTES, "a bit each"
    tracker.finish(0)
    assert tracker.fits(taken), "the position moved: there is room for one more"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "expected 'farandole1"),
        ("someone else's", "expected 'farandole1"),
        ("farandole2 a.0 t 5 r", "expected 'farandole1"),
        ("farandole1 a.0 t 6 r", "it is of position 6"),
        ("farandole1 a.0 t 5 rA", "not base64"),
        ("farandole1 a.0 t 5 rAg==", "cut off"),
        ("farandole1 a.0 t 5 rgA==", "cut off"),
        ("farandole1 a.0 t 5 x", "its form is 'x'"),
        ("farandole1 a.0 t 5 r\N{DIGIT ZERO}é", "not base64"),
    ],
)
def test_foreign_metadata_is_refused_with_a_reason(text: str, word: str) -> None:
    with pytest.raises(Unreadable, match=word):
        decode(text, 5)


@given(st.text(max_size=200))
def test_no_text_breaks_the_reading(text: str) -> None:
    for tried in (text, f"farandole1 a.0 t 5 r{text}", f"farandole1 a.0 t 5 b{text}"):
        try:
            note = decode(tried, 5)
        except Unreadable:
            continue
        assert all(first >= 5 and end > first for first, end in note.beyond)


@given(st.integers(1, 5000), st.integers(1, 2**35))
def test_what_fits_does_not_stop_fitting_with_fewer_runs_or_a_shorter_span(runs: int, span: int) -> None:
    if positions.fits(runs, span):
        assert positions.fits(runs - 1, span)
        assert positions.fits(runs, span - 1)
