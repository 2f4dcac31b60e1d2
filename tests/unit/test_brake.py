"""The brake against a plain model: the row, the share, and what they say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from farandole.outcome import DeadLettered, Emitted, Failed, Outcome, Skipped, Suspended
from farandole.worker.brake import Brake

OUTCOMES: list[Outcome] = [
    Emitted([]),
    Failed("tired"),
    Skipped("duplicate"),
    Suspended(1.0),
    DeadLettered("rejected", "never"),
    DeadLettered("invalid", "no such field"),
]


@given(
    st.lists(st.sampled_from(OUTCOMES), max_size=60), st.integers(1, 6), st.integers(2, 12), st.sampled_from([0.3, 0.5])
)
def test_it_stops_at_the_first_row_or_share_that_is_too_much_and_stays_so(
    outcomes: list[Outcome], in_a_row: int, of: int, ratio: float
) -> None:
    brake, counted = Brake("sort", in_a_row, ratio, of), []
    stopped = False
    for outcome in outcomes:
        reason = brake.saw(outcome)
        if not isinstance(outcome, Skipped | Suspended):
            counted.append(isinstance(outcome, DeadLettered))
        row = len(counted) >= in_a_row and all(counted[-in_a_row:])
        share = len(counted) >= of and sum(counted[-of:]) > ratio * of
        stopped = stopped or row or share
        assert (reason is not None) is stopped


@given(st.lists(st.sampled_from(OUTCOMES), max_size=60))
def test_a_brake_of_none_in_a_row_never_stops(outcomes: list[Outcome]) -> None:
    brake = Brake("sort", 0, 0.1, 2)
    assert not any(brake.saw(outcome) for outcome in outcomes)


def test_the_reason_names_counts_the_commonest_cause_an_example_and_the_command() -> None:
    brake = Brake("sort", in_a_row=3)
    brake.saw(DeadLettered("invalid", "no such field"))
    brake.saw(DeadLettered("rejected", "never"))
    reason = brake.saw(DeadLettered("rejected", "not ever"))
    assert reason is not None
    for part in ("3 events in a row", "(2) as rejected", "not ever", "`farandole dead list --agent sort`"):
        assert part in reason


def test_the_share_counts_the_latest_alone() -> None:
    """Two thirds dead at first, then well again: the row never comes, the share is forgotten."""
    brake = Brake("sort", in_a_row=3, ratio=0.5, of=6)
    for number in range(4):
        assert brake.saw(DeadLettered("invalid", "x") if number % 3 else Emitted([])) is None
    for _ in range(100):
        assert brake.saw(Emitted([])) is None
    assert brake.saw(DeadLettered("invalid", "x")) is None
