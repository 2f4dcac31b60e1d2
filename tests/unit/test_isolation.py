"""The gate: alone is alone, nobody waits for ever, whoever is cancelled leaves no trace."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farandole.worker.isolation import Isolation


class Room:
    """Who is inside, and a complaint when somebody alone is not."""

    def __init__(self) -> None:
        self.gate = Isolation()
        self.inside: list[str] = []
        self.complaints: list[str] = []
        self.entered: list[str] = []

    async def visit(self, name: str, act: Callable[[], object] = lambda: None, steps: int = 1) -> None:
        gate = self.gate.alone() if name.startswith("alone") else self.gate.together()
        async with gate:
            self.inside.append(name)
            self.entered.append(name)
            try:
                for _ in range(steps):
                    self.look()
                    await asyncio.sleep(0)
                self.look()
                act()
            finally:
                self.inside.remove(name)

    def look(self) -> None:
        if len(self.inside) > 1 and any(name.startswith("alone") for name in self.inside):
            self.complaints.append(f"inside at once: {self.inside}")

    async def is_free(self) -> None:
        """Everybody can still go in."""
        async with asyncio.timeout(5):
            await self.visit("alone at last")
            await asyncio.gather(self.visit("one"), self.visit("other"))
        assert not self.gate.wanted


visits = st.lists(
    st.tuples(st.sampled_from(["alone", "together"]), st.integers(0, 5), st.integers(0, 4), st.booleans()),
    max_size=25,
)


@given(visits, st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), max_size=12), st.randoms())
@settings(deadline=None, max_examples=300)
def test_whatever_comes_and_is_cancelled_alone_is_alone_and_all_get_in(
    visits: list[tuple[str, int, int, bool]], cancels: list[tuple[int, int]], chance: random.Random
) -> None:
    """Each visit begins after some steps, stays for some, may raise; `cancels` are (step, visit) pairs."""

    async def run() -> None:
        room = Room()

        def fail() -> None:
            raise ValueError("inside")

        async def one(name: str, after: int, steps: int, raises: bool) -> None:
            for _ in range(after):
                await asyncio.sleep(0)
            await room.visit(name, fail if raises else lambda: None, steps)

        tasks = [
            asyncio.ensure_future(one(f"{kind} {number}", after, steps, raises))
            for number, (kind, after, steps, raises) in enumerate(visits)
        ]
        for step in range(31):
            for at, number in cancels:
                if at == step and number < len(tasks):
                    tasks[number].cancel()
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for (*_, raises), end in zip(visits, ends, strict=True):
            assert end is None or isinstance(end, asyncio.CancelledError) or (raises and isinstance(end, ValueError))
        assert room.complaints == []
        await room.is_free()

    asyncio.run(run())


async def test_who_wants_to_be_alone_holds_up_who_comes_later_and_then_they_take_turns() -> None:
    room = Room()
    first = asyncio.ensure_future(room.visit("early", steps=3))
    await asyncio.sleep(0)
    visits = [asyncio.ensure_future(room.visit(name)) for name in ("alone 1", "late 1", "alone 2", "late 2")]
    await asyncio.gather(first, *visits)
    assert room.entered == ["early", "alone 1", "late 1", "late 2", "alone 2"]
    assert room.complaints == []


async def test_many_are_inside_together() -> None:
    room = Room()
    most = 0

    def look() -> None:
        nonlocal most
        most = max(most, len(room.inside))

    await asyncio.gather(*(room.visit(f"{number}", look) for number in range(50)))
    assert most == 50


@pytest.mark.parametrize("who", ["alone", "together"])
async def test_one_that_is_cancelled_as_it_is_let_in_leaves_the_gate_open(who: str) -> None:
    room = Room()
    async with room.gate.alone() if who == "together" else room.gate.together():
        waits = asyncio.ensure_future(room.visit(who))
        await asyncio.sleep(0)
    waits.cancel()  # let in by the one that left, and not yet awake
    await asyncio.gather(waits, return_exceptions=True)
    assert waits.cancelled() and room.entered == []
    await room.is_free()
