"""Lanes beside a simple model: a key's records in order and one at a time, partitions in turn, nothing forgotten."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from farandole.worker.lanes import Lanes


class LanesBesideModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.lanes: Lanes[tuple[str, bytes | None, int]] = Lanes()
        self.waiting: dict[tuple[str, Any], list[Any]] = {}
        self.working: list[Any] = []
        self.number = 0

    @rule(source=st.sampled_from("pqr"), key=st.sampled_from([b"a", b"b", b"c", b"", None]))
    def add(self, source: str, key: bytes | None) -> None:
        item = (source, key, self.number)
        self.number += 1
        self.waiting.setdefault((source, key or self.number), []).append(item)
        self.lanes.add(source, key, item)

    @rule()
    def start(self) -> None:
        lane = self.lanes.start()
        busy = {(started.source, started.key) for started in self.working if started.key}
        startable = [queue[0] for name, queue in self.waiting.items() if name not in busy]
        if lane is None:
            assert not startable
            return
        assert lane.items[0] in startable
        for name, queue in list(self.waiting.items()):
            if queue[0] == lane.items[0]:
                queue.pop(0)
                if not queue:
                    del self.waiting[name]
        self.working.append(lane)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: Any) -> None:
        self.lanes.done(self.working.pop(data.draw(st.integers(0, len(self.working) - 1))))

    @rule(source=st.sampled_from("pqr"))
    def drop(self, source: str) -> None:
        """A source that was dropped never comes back: its next assignment is another one."""
        if any(lane.source == source for lane in self.working):
            return
        self.lanes.drop(source)
        self.waiting = {name: queue for name, queue in self.waiting.items() if name[0] != source}

    @invariant()
    def the_counts_are_right(self) -> None:
        assert self.lanes.queued == sum(map(len, self.waiting.values()))
        busy = {(lane.source, lane.key) for lane in self.working if lane.key}
        assert self.lanes.ready == sum(name not in busy for name in self.waiting)


TestLanes = LanesBesideModel.TestCase
TestLanes.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def test_what_is_in_work_of_a_dropped_source_may_end_and_starts_nothing() -> None:
    lanes = Lanes[int]()
    for item in range(3):
        lanes.add("p", b"k", item)
    lane = lanes.start()
    assert lane
    lanes.drop("p")
    lanes.done(lane)
    assert (lanes.start(), lanes.ready, lanes.queued) == (None, 0, 0)


def test_partitions_take_turns_however_many_keys_one_of_them_has() -> None:
    lanes = Lanes[str]()
    for number in range(100):
        lanes.add("busy", b"%d" % number, "busy")
    lanes.add("quiet", b"k", "quiet")
    started = [lanes.start() for _ in range(2)]
    assert [lane.items[0] for lane in started if lane] == ["busy", "quiet"]
