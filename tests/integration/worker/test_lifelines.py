"""Lifelines in a real Postgres: what workers that die, let go or take over leave behind; and a killer that is found."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from farandole import migrate, postgres
from farandole.settings import Settings
from farandole.worker.lifelines import DEATHS, KILLS, Lifelines, killed

LOOKAHEAD = 5
PLACE, OTHER = ("jobs.heard", 0), ("jobs.heard", 1)


@pytest.fixture
def connection(farandole_settings: Settings) -> Iterator[postgres.Connection[Any]]:
    migrate.migrate(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        connection.execute("SET synchronous_commit = off")  # as the worker's session is
        yield connection


def life(number: int | str) -> Lifelines:
    return Lifelines("echo", f"life {number}", LOOKAHEAD)


def test_deaths_over_something_are_counted_until_records_are_handled_alone(
    connection: postgres.Connection[Any],
) -> None:
    for number in range(DEATHS + 1):
        lifelines = life(number)
        taken = lifelines.take(connection, {PLACE: 7, OTHER: number})
        assert (taken[PLACE].deaths, taken[OTHER].deaths) == (number, 0)
    assert taken[PLACE].until == 7 + 2 * LOOKAHEAD
    assert taken[OTHER].until is None


def test_a_partition_of_another_agent_or_topic_is_another_one(connection: postgres.Connection[Any]) -> None:
    for number in range(DEATHS + 1):
        lifelines = life(number)
        lifelines.take(connection, {PLACE: 7})
    assert life("x").take(connection, {("echo.wake", 0): 7})[("echo.wake", 0)].deaths == 0
    assert Lifelines("ask", "life y", 5).take(connection, {PLACE: 7})[PLACE].deaths == 0


def test_who_lets_go_has_not_died_whatever_it_abandons(connection: postgres.Connection[Any]) -> None:
    for number in range(5):
        lifelines = life(number)
        taken = lifelines.take(connection, {PLACE: 7})[PLACE]
        assert (taken.deaths, taken.kills) == (0, 0)
        assert lifelines.alone(connection, *PLACE, 7) == 0
        lifelines.let_go(connection, [PLACE])


def test_a_killer_is_known_by_its_kills_and_they_outlive_a_drain(connection: postgres.Connection[Any]) -> None:
    lifelines = life(0)
    lifelines.take(connection, {PLACE: 7})
    for kills in range(KILLS):
        assert lifelines.alone(connection, *PLACE, 9) == kills
        drained = life(f"drained {kills}")
        assert drained.take(connection, {PLACE: 8})[PLACE].suspect == 9
        drained.let_go(connection, [PLACE])
        lifelines = life(kills + 1)
        assert lifelines.take(connection, {PLACE: 8})[PLACE].kills == kills + 1
    assert killed(lifelines.alone(connection, *PLACE, 9) or 0)
    lifelines.done(connection, *PLACE, 9)
    assert lifelines.alone(connection, *PLACE, 10) == 0, "the next one is innocent"
    lifelines.done(connection, *PLACE, 10)
    assert life("last").take(connection, {PLACE: 8})[PLACE].kills == 0


def test_another_record_that_is_handled_alone_begins_without_kills(connection: postgres.Connection[Any]) -> None:
    lifelines = life(0)
    lifelines.take(connection, {PLACE: 7})
    lifelines.alone(connection, *PLACE, 7)
    lifelines = life(1)
    assert lifelines.take(connection, {PLACE: 7})[PLACE].kills == 1
    assert lifelines.alone(connection, *PLACE, 8) == 0
    assert lifelines.alone(connection, *PLACE, 7) == 0


def test_a_worker_that_has_lost_a_partition_marks_clears_and_releases_nothing(
    connection: postgres.Connection[Any],
) -> None:
    frozen, next_one = life("frozen"), life("next")
    frozen.take(connection, {PLACE: 7})
    next_one.take(connection, {PLACE: 7})
    assert next_one.alone(connection, *PLACE, 7) == 0
    assert frozen.alone(connection, *PLACE, 7) is None
    frozen.done(connection, *PLACE, 7)
    frozen.let_go(connection, [PLACE])
    assert life("later").take(connection, {PLACE: 7})[PLACE].kills == 1, "the mark stood, and so did its owner"


def test_a_worker_that_begins_anew_in_its_process_has_not_died(connection: postgres.Connection[Any]) -> None:
    living: set[str] = set()
    for number in range(DEATHS + 1):
        lifelines = Lifelines("echo", f"life {number}", LOOKAHEAD, living)
        line = lifelines.take(connection, {PLACE: 7})[PLACE]
        assert (line.owner, line.deaths, line.kills) == (f"life {number}", 0, 0)
        lifelines.alone(connection, *PLACE, 7)
    assert life("elsewhere").take(connection, {PLACE: 7})[PLACE].kills == 1


def test_taking_again_after_a_lost_answer_counts_nothing_twice(connection: postgres.Connection[Any]) -> None:
    first = life(0)
    first.take(connection, {PLACE: 7})
    first.alone(connection, *PLACE, 7)
    second = life(1)
    once = second.take(connection, {PLACE: 7})
    assert second.take(connection, {PLACE: 7}) == once
    assert (once[PLACE].deaths, once[PLACE].kills) == (1, 1)


class Machine:
    """A worker's process as a model: it handles what lies on one partition, concurrently or alone, and may die at any step.

    `killers` end the process when they are handled; `luck` is the chance that something else does at each step.
    """

    def __init__(
        self, connection: postgres.Connection[Any], records: int, killers: set[int], luck: float, seed: int
    ) -> None:
        self.connection, self.records, self.killers, self.luck = connection, records, killers, luck
        self.chance = random.Random(seed)
        self.committed: dict[int, str] = {}
        self.lives = 0

    @property
    def position(self) -> int:
        return next(offset for offset in range(self.records + 1) if offset not in self.committed)

    def run(self, most: int) -> None:
        while len(self.committed) < self.records and self.lives < most:
            self.lives += 1
            self.live()

    def live(self) -> None:
        lifelines = life(self.lives)
        line = lifelines.take(self.connection, {PLACE: self.position})[PLACE]
        while (position := self.position) < self.records:
            if self.chance.random() < self.luck:
                return
            if line.until is not None and position < line.until:
                kills = lifelines.alone(self.connection, *PLACE, position)
                assert kills is not None
                if not killed(kills) and (position in self.killers or self.chance.random() < self.luck):
                    return
                self.committed[position] = "killed" if killed(kills) else "done"
                if self.chance.random() < self.luck:
                    return  # committed, and not yet cleared
                lifelines.done(self.connection, *PLACE, position)
                continue
            hand = [offset for offset in range(position, self.records) if offset not in self.committed][:LOOKAHEAD]
            self.chance.shuffle(hand)
            for offset in hand:
                if offset in self.killers or self.chance.random() < self.luck:
                    return
                self.committed[offset] = "done"  # beyond the position, too


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("killers", [{11}, {11, 12}, {0, 29}])
def test_killers_are_found_and_nobody_else_is_blamed(
    connection: postgres.Connection[Any], killers: set[int], seed: int
) -> None:
    machine = Machine(connection, 30, killers, 0.0, seed)
    machine.run(most=(LOOKAHEAD + DEATHS + KILLS + 1) * len(killers))
    assert {offset for offset, end in machine.committed.items() if end == "killed"} == killers
    assert len(machine.committed) == 30


@pytest.mark.parametrize("seed", range(5))
def test_chance_alone_dead_letters_nothing(connection: postgres.Connection[Any], seed: int) -> None:
    machine = Machine(connection, 200, set(), 0.04, seed)
    machine.run(most=500)
    assert set(machine.committed.values()) == {"done"} and len(machine.committed) == 200
    assert machine.lives > 3, "it did die"


@pytest.mark.parametrize("seed", range(3))
def test_a_killer_is_found_while_chance_kills_too(connection: postgres.Connection[Any], seed: int) -> None:
    machine = Machine(connection, 40, {17}, 0.05, seed)
    machine.run(most=100)
    assert {offset for offset, end in machine.committed.items() if end == "killed"} == {17}
    assert len(machine.committed) == 40
