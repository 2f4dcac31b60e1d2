"""Projectors that do a plan's steps, are cut off where it says, and meet each other in the middle of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from farandole import postgres, projections
from farandole.contracts.lookup import Schemas
from farandole.postgres import OUTAGES, Connection
from farandole.projections import Projection
from farandole.projector import outages
from farandole.projector.rows import Rows
from farandole.projector.store import Place
from farandole.settings import Settings
from tests.integration.proof.member import Member
from tests.integration.proof.plans import Claim, Cut, Fold, Meeting, Prepare, Refold, Release, Step
from tests.integration.proof.world import PLACES, World
from tests.wire import Way, Wire

#: Seconds for a step that ought to take milliseconds; then something waits for ever.
PATIENCE = 60.0

#: Seconds that a step is given to end or to wait for a lock while another one is held; some wait by looking again and again.
MEANWHILE = 1.0


class Crew:
    """Up to three projectors and whoever refolds, each behind a wire of its own; they stay connected from plan to plan."""

    def __init__(self, settings: Settings, found: list[Projection], schemas: Schemas) -> None:
        self._observer: Connection[Any] = postgres.connect(settings, application="observer")
        self._found = found
        self._builder = Wire(settings)
        self._wires = [Wire(settings) for _ in range(3)]
        self._rows = Rows(schemas, settings)
        self._pool = ThreadPoolExecutor(2)
        self._all: list[Member] = []
        self.members: list[Member] = []

    def begin(self, world: World, count: int) -> None:
        """Share the places out."""
        self._refolds = 0
        for wire in (self._builder, *self._wires):
            wire.arm()
        while len(self._all) < count:
            number = len(self._all)
            self._all.append(Member(self._rows, self._wires[number], f"p{number}"))
        self.members = self._all[:count]
        for number, member in enumerate(self.members):
            member.begin(world, PLACES[number::count])

    def renew(self) -> None:
        """Leave no connection in the state a failure has left it in."""
        for member in self._all:
            member.close()
        self._all = []

    def close(self) -> None:
        self.renew()
        for wire in (self._builder, *self._wires):
            wire.close()
        self._pool.shutdown()
        self._observer.close()

    def do(self, step: Step | Meeting, look: Callable[[], None]) -> None:
        """`look` is called in the middle of a meeting."""
        if isinstance(step, Meeting):
            self._meet(step, look)
        else:
            self._wire(step).arm(step.cut.at if step.cut else 0, step.cut.way if step.cut else Way.PASS)
            refused = self._not_theirs(step)
            self._attempt(step, step.cut)
            if isinstance(step, Fold) and not self._member(step.who).interrupted:
                assert self._member(step.who).refused == refused, "partitions refused, and those that are another's"

    def asked(self, step: Step) -> int:
        """Messages that whoever does such a step has sent since the last one began."""
        return self._wire(step).asked

    def finish(self) -> None:
        """One projector takes all that is left."""
        last = self.members[0]
        self._wire(Release(0)).arm()
        for _ in range(3):  # what was prepared, what is left, and nothing
            last.claim(PLACES)
            last.fold(10_000, 0)

    def refold(self) -> None:
        self._builder.arm()
        self._refold_next()

    def _refold_next(self) -> None:
        """One projection, the core first and then another one each time: all of them would take most of a plan's time."""
        name = self._found[self._refolds % len(self._found)].name
        self._refolds += 1
        projections.refold(self._builder.settings, self._found, name)

    def _not_theirs(self, step: Step) -> set[Place]:
        """The partitions in a batch that is coming, whose rows in the database name another owner or epoch."""
        if not isinstance(step, Fold):
            return set()
        member = self._member(step.who)
        member.prepare(step.most)
        assert member.waiting
        _, reached, epochs = member.waiting
        rows = self._observer.execute("SELECT topic, partition, owner, epoch FROM projector_offset").fetchall()
        theirs = {(row[0], row[1]) for row in rows if (row[2], row[3]) == (member.name, epochs.get((row[0], row[1])))}
        return reached.keys() - theirs

    def _attempt(self, step: Step, cut: Cut | None) -> None:
        try:
            self._act(step)
        except OUTAGES as failure:
            outages.only(failure)
            self._wire(step).arm()
            if isinstance(step, Refold):
                self._builder.cut()
            else:
                self._member(step.who).recover(killed=cut is not None and cut.killed)

    def _act(self, step: Step) -> None:
        match step:
            case Fold(who, most, again):
                self._member(who).fold(most, again)
            case Prepare(who, most):
                self._member(who).prepare(most)
            case Claim(who, places):
                self._member(who).claim([PLACES[number % len(PLACES)] for number in places])
            case Release(who):
                self._member(who).release()
            case Refold():
                self._refold_next()

    def _meet(self, meeting: Meeting, look: Callable[[], None]) -> None:
        first, second = meeting.first, meeting.second
        if self._wire(first) is self._wire(second):  # one at a time
            second = Fold((getattr(first, "who", 0) + 1) % len(self.members), 3)
        if self._wire(first) is self._wire(second):
            second = Refold()
        held, goes_on = threading.Event(), threading.Event()

        def hold() -> Way:
            held.set()
            assert goes_on.wait(PATIENCE)
            return meeting.way

        self._wire(second).arm()
        self._wire(first).arm(meeting.at, hold)
        acting = self._pool.submit(self._attempt, first, None)
        acting.add_done_callback(lambda _: held.set())
        assert held.wait(PATIENCE)
        try:
            beside = self._pool.submit(self._attempt, second, None)
            self._await_end_or_lock(beside, second)
            look()
        finally:
            goes_on.set()
        done, _ = wait([acting, beside], PATIENCE)
        assert len(done) == 2, f"this never ends: {meeting}"
        for future in done:
            future.result()

    def _await_end_or_lock(self, future: Future[None], step: Step) -> None:
        deadline = time.monotonic() + MEANWHILE
        while time.monotonic() < deadline and not wait([future], 0.005).done and not self.waits(step):
            pass

    def waits(self, step: Step) -> bool:
        """Whether whoever does the step waits for a lock of somebody else."""
        query = "SELECT count(*) FROM unnest(%s::int[]) AS pid WHERE pg_blocking_pids(pid) <> '{}'"
        row = self._observer.execute(query, (self._wire(step).pids,)).fetchone()
        return bool(row and row[0])

    def _member(self, who: int) -> Member:
        return self.members[who % len(self.members)]

    def _wire(self, step: Step) -> Wire:
        return self._builder if isinstance(step, Refold) else self._member(step.who).wire
