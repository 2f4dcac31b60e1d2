"""A commit whose answer never comes, swallowed on its way or killed with the database: one of both, and it is found out."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from farandole import postgres
from farandole.postgres import Connection, sql
from farandole.settings import Settings, load_settings
from farandole.stack.stack import Stack
from tests import oracle
from tests.eventually import eventually
from tests.integration.projection_service import make_topics, running, send
from tests.integration.projection_tables import jobs, one, prepare, stage_times
from tests.integration.proof.stage import PROVE
from tests.journeys import Fact, Submitted, facts, new_fact
from tests.wire import Way, Wire, wired

#: Kills of Postgres; more until both outcomes were seen, at most `MOST`.
ROUNDS, MOST = max(2, PROVE // 20), 40

#: Microseconds that Postgres waits before it flushes a commit to disk, so that a kill falls into it: the most it allows.
DELAY = 100_000

#: Events that are sent at once.
BATCH = 20

HELD = "SELECT count(*) FROM projector_offset WHERE owner IS NOT NULL"
EVENTS = "SELECT count(*) FROM event_log"
OFFSETS = "SELECT sum(coalesce(next_offset, 0))::int FROM projector_offset"
WAITS = "SELECT pid FROM pg_stat_activity WHERE pid = ANY (%s) AND wait_event = 'SyncRep'"


class Traffic:
    """What was sent to a namespace, and what its tables must come to."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sent: list[Fact] = []

    def send(self, chosen: Sequence[Fact]) -> None:
        send(self._settings, chosen)
        self._sent += chosen

    @property
    def happened(self) -> list[oracle.Happened]:
        return oracle.once(fact.happened for fact in self._sent)

    def folded(self, database: Connection[Any]) -> bool:
        return bool(one(database, EVENTS) == len(self.happened))

    def must_be_all(self, database: Connection[Any]) -> None:
        """Nothing lost, nothing doubled, nothing parked, and the offsets are those of what was sent."""
        assert jobs(database) == oracle.jobs(self.happened)
        assert stage_times(database) == oracle.stage_times(self.happened)
        assert one(database, "SELECT (SELECT count(*) FROM parked) + (SELECT count(*) FROM conflict)") == 0
        assert one(database, OFFSETS) == len(self._sent)


@contextmanager
def projecting(settings: Settings) -> Iterator[tuple[Wire, Traffic]]:
    """A real projector whose connection to the database is a wire, with its partitions claimed."""
    make_topics(settings)
    prepare(settings)
    with wired(settings) as wire, running(wire.settings):
        with postgres.connect(settings) as database:
            eventually(lambda: one(database, HELD) > 0)
        yield wire, Traffic(settings)


def at_commit(wire: Wire, way: Way) -> threading.Event:
    """Set when the next commit has come to the wire, where it goes `way`."""
    come = threading.Event()

    def then() -> Way:
        come.set()
        return way

    wire.arm(1, then, saying=b"COMMIT")
    return come


def test_the_answer_to_a_commit_is_swallowed_or_the_commit_itself_and_all_is_folded_once(
    farandole_settings: Settings,
) -> None:
    ways = [Way.ANSWERED, Way.BEFORE, Way.AFTER] * max(1, PROVE // 20)
    with projecting(farandole_settings) as (wire, traffic), postgres.connect(farandole_settings) as database:
        for number, way in enumerate(ways):
            come = at_commit(wire, way)
            traffic.send(facts(100 + number, 10))
            assert come.wait(30)
            eventually(lambda: traffic.folded(database))
        traffic.must_be_all(database)


def test_postgres_killed_in_a_commit_has_either_all_of_it_or_nothing_and_work_goes_on(
    farandole_outages: Stack, farandole_namespace: str
) -> None:
    """By turns the commit is on disk and not told (it waits for a standby that is not there), or about to be flushed."""
    settings = load_settings(**asdict(farandole_outages.endpoints), namespace=farandole_namespace)
    outcomes: set[bool] = set()
    with projecting(settings) as (wire, traffic):
        for number in range(MOST):
            if number >= ROUNDS and len(outcomes) == 2:
                break
            outcomes.add(kill_in_commit(farandole_outages, wire, traffic, settings, flushed=number % 2 == 0))
        assert outcomes == {True, False}
        with postgres.connect(settings) as database:
            traffic.must_be_all(database)


def kill_in_commit(stack: Stack, wire: Wire, traffic: Traffic, settings: Settings, flushed: bool) -> bool:
    """Whether the batch was there when Postgres came back, before the projector could do anything about it."""
    widen = {"synchronous_standby_names": "nobody"} if flushed else {"commit_delay": str(DELAY), "commit_siblings": "0"}
    configure(settings, widen)
    come = at_commit(wire, Way.PASS)
    chosen = [new_fact(Submitted)]
    while len(chosen) < BATCH:
        chosen.append(new_fact(Submitted, cause=chosen[-1]))  # one job: one partition
    traffic.send(chosen)
    assert come.wait(30)
    if flushed:
        with postgres.connect(settings) as database:
            eventually(lambda: database.execute(WAITS, (wire.pids,)).fetchall())
    wire.open = False
    stack.postgres.kill()
    stack.postgres.start()
    configure(settings, dict.fromkeys(widen, "DEFAULT"))
    with postgres.connect(settings) as database:
        events = one(database, EVENTS)
        assert events == one(database, OFFSETS), "events without their offset, or the offset without its events"
        written = traffic.folded(database)
        assert written or events == len(traffic.happened) - BATCH
        wire.open = True
        eventually(lambda: traffic.folded(database))
    return written


def configure(settings: Settings, wanted: dict[str, str]) -> None:
    """Change the server's own settings, and wait until a session has them."""
    with postgres.connect(settings) as database:
        database.execute("SET synchronous_commit = local")
        for name, value in wanted.items():
            database.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.SQL(name), sql.SQL(value)))
        database.execute("SELECT pg_reload_conf()")
    defaults = "SELECT count(*) FROM pg_settings WHERE name = ANY (%s) AND setting IS DISTINCT FROM boot_val"
    changed = 0 if "DEFAULT" in wanted.values() else 1

    def taken() -> bool:
        with postgres.connect(settings) as other:
            row = other.execute(defaults, (list(wanted),)).fetchone()
            return row is not None and min(row[0], 1) == changed

    eventually(taken)
