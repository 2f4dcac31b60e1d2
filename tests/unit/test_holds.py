"""Held keys, beside a simple model of a worker: whatever the timing, events of a key that wait are not overtaken."""

from __future__ import annotations

import itertools

from farandole.worker.holds import Holds


def test_a_key_is_held_until_it_is_put_off_when_no_claim_is_under_way() -> None:
    holds = Holds()
    holds.hold(b"k")
    assert b"k" in holds
    assert b"other" not in holds
    assert None not in holds
    holds.put_off([b"k"])
    assert b"k" not in holds


def test_a_key_stays_held_for_the_claims_that_began_before_its_row_was_committed() -> None:
    holds = Holds()
    holds.hold(b"k")
    holds.claiming()
    holds.claiming()
    holds.put_off([b"k"])
    holds.claiming()  # this one sees the row
    holds.handed_over()
    assert b"k" in holds, "the second claim may hold events of the key"
    holds.handed_over()
    assert b"k" not in holds
    holds.handed_over()
    assert b"k" not in holds


def test_a_key_is_held_as_long_as_one_of_its_events_is_being_put_off() -> None:
    holds = Holds()
    holds.hold(b"k")
    holds.hold(b"k")
    holds.hold(None)
    holds.put_off([b"k", None])
    assert b"k" in holds
    holds.put_off([b"k"])
    assert b"k" not in holds


def test_no_event_of_a_key_is_handled_once_an_earlier_one_waits() -> None:
    """Every order of eight steps, after the first event was claimed and handed over."""
    for steps in itertools.product(("claim", "hand over", "handle", "commit"), repeat=8):
        assert handled(("claim", "hand over", *steps)) in ([], [0]), steps


def handled(steps: tuple[str, ...]) -> list[int]:
    """Events 0, 1, 2, … of one key; each is claimed (the database is asked), handed over, and put off when it is handled."""
    holds, row_is_there = Holds(), False
    claims: list[tuple[int, bool]] = []  # claimed, not handed over: the event, and whether its claim saw the row
    lane: list[int] = []
    putting_off: list[int] = []
    found: list[int] = []
    events = iter(range(100))
    for step in steps:
        match step:
            case "claim":
                holds.claiming()
                claims.append((next(events), row_is_there))
            case "hand over" if claims:
                event, behind = claims.pop(0)
                if behind or b"k" in holds:
                    holds.hold(b"k")
                    putting_off.append(event)
                else:
                    lane.append(event)
                holds.handed_over()
            case "handle" if lane:  # the first in the lane is put off, and those that stand in line behind it with it
                found.append(lane[0])
                for event in lane:
                    holds.hold(b"k")
                    putting_off.append(event)
                lane.clear()
            case "commit" if putting_off:
                row_is_there = True
                holds.put_off([b"k"] * len(putting_off))
                putting_off.clear()
    return found
