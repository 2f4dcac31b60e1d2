"""Plans for a property test: what lies in the log, and what projectors do with it; small numbers, so that they shrink."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.journeys import EVENTS
from tests.wire import Way

#: Of the journeys' topics, each in two partitions; a plan names a place by its number.
PARTITIONS = 2

#: Seconds after the journeys' start, a minute before midnight: so few that events often tie, and on two days.
MOMENTS = (0, 61)

#: Texts of a payload. The first is the usual one; the others make a conflict of what has the same id.
TEXTS = ("hello", "other", "a\0b")


@dataclass(frozen=True, slots=True)
class Slot:
    """An event's identity and what it says of its job."""

    job: int
    kind: int  #: in EVENTS
    run: int
    hop: int
    moment: int  #: in MOMENTS
    attempt: int


@dataclass(frozen=True, slots=True)
class Good:
    """The event of a slot as a record: the same slot twice is a duplicate, with another text a conflict."""

    slot: int
    partition: int
    text: int = 0
    late: bool = False  #: the same fact told again, by a clock a minute ahead and at a later attempt


@dataclass(frozen=True, slots=True)
class Bad:
    """A record to be parked: bytes that are no event, or (`refused`) an event that breaks a constraint of the database."""

    topic: int
    partition: int
    job: int  #: of its key
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Hole:
    """An offset without a record, as the marker of a transaction leaves it."""

    topic: int
    partition: int


Lying = Good | Bad | Hole


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection is broken at the `at`-th message of a step."""

    at: int
    way: Way
    killed: bool  #: the process is gone too: who goes on has another name and remembers nothing


@dataclass(frozen=True, slots=True)
class Fold:
    """One batch: up to `most` records of each partition that the projector holds, `again` of them for the second time."""

    who: int
    most: int
    again: int = 0
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class Prepare:
    """A batch is made ready; it is the projector's next one to be written, whatever happens until then."""

    who: int
    most: int
    cut: None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """Kafka has given these partitions to the projector; whoever had them learns of it when the database refuses."""

    who: int
    places: frozenset[int]
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class Release:
    who: int
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class Refold:
    """A projection again from the log: the core, and at the next refold another one."""

    cut: Cut | None = None


Step = Fold | Prepare | Claim | Release | Refold


@dataclass(frozen=True, slots=True)
class Meeting:
    """`first` is held at its `at`-th message while `second` runs, to its end or until it waits for a lock of the first."""

    first: Step
    at: int
    way: Way  #: what becomes of the message that was held
    second: Step


@dataclass(frozen=True, slots=True)
class Plan:
    slots: list[Slot]
    log: list[Lying]
    projectors: int
    steps: list[Step | Meeting]


def _small(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


#: A batch with nothing odd in it has some seventeen messages, one whose halves are tried has many more; beyond the last one
#: the cut never comes.
_AT = st.integers(1, 18) | st.integers(1, 18) | st.integers(1, 60)
_WHO = _small(2)
_CUT = st.builds(Cut, _AT, st.sampled_from([Way.BEFORE, Way.AFTER, Way.ANSWERED]), st.booleans())
_MAYBE = st.none() | _CUT


def _steps(cut: st.SearchStrategy[Cut | None]) -> st.SearchStrategy[Step]:
    folds = st.builds(Fold, _WHO, st.integers(1, 4), _small(2), cut)
    claims = st.builds(Claim, _WHO, st.frozensets(_small(7), min_size=1), cut)
    prepared = st.builds(Prepare, _WHO, st.integers(1, 4))
    others = st.one_of(st.builds(Release, _WHO, cut), st.builds(Refold, cut))
    return st.one_of(folds, folds, folds, folds, prepared, claims, claims, others)


def plans() -> st.SearchStrategy[Plan]:
    """Any plan: up to two jobs, eight events, forty records and sixteen steps.

    The numbers are small so that things meet: two events that tie for the lead, a partition and the one who had it before.
    """
    kinds = st.sampled_from([*range(len(EVENTS)), 0, 1])
    slots = st.builds(Slot, _small(1), kinds, _small(1), _small(1), _small(1), st.integers(1, 2))
    partition = _small(PARTITIONS - 1)
    good = st.builds(Good, _small(7), partition, st.sampled_from([0, 0, 0, 1, 2]), st.booleans())
    bad = st.builds(Bad, _small(3), partition, _small(1), st.booleans())
    hole = st.builds(Hole, _small(3), partition)
    meeting = st.builds(Meeting, _steps(st.none()), _AT, st.sampled_from([Way.PASS, Way.AFTER]), _steps(st.none()))
    steps = st.one_of(_steps(_MAYBE), _steps(_MAYBE), _steps(_MAYBE), meeting)
    return st.builds(
        Plan,
        st.lists(slots, min_size=6, max_size=8),
        st.lists(st.one_of(good, good, good, good, bad, hole), min_size=10, max_size=40),
        st.sampled_from([2, 3, 1]),
        st.lists(steps, min_size=6, max_size=16),
    )
