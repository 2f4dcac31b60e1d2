"""Postgres away, and killed in a commit whose answer never comes: that commit is one of both, and work goes on by itself."""

from __future__ import annotations

import threading
from dataclasses import asdict

import pytest

from farandole import postgres
from farandole.postgres import sql
from farandole.settings import Settings, load_settings
from farandole.stack.stack import Stack
from tests.commands import typed
from tests.eventually import eventually
from tests.integration.projection_tables import one
from tests.integration.proof.stage import PROVE
from tests.integration.proof.traffic import EVENTS, HELD, OFFSETS, Traffic, projecting
from tests.journeys import Submitted, facts, new_fact
from tests.wire import Way, Wire

#: Kills of Postgres; more until both outcomes were seen, at most `MOST`.
ROUNDS, MOST = max(2, PROVE // 20), 40

#: Microseconds that Postgres waits before it flushes a commit to disk, so that a kill falls into it: the most it allows.
DELAY = 100_000

#: Events that are sent at once.
BATCH = 20

WAITS = "SELECT pid FROM pg_stat_activity WHERE pid = ANY (%s) AND wait_event = 'SyncRep'"


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
    come = at_commit(wire, Way.PASS)  # first: no commit may wait without our knowing
    configure(settings, widen)
    chosen = [new_fact(Submitted)]
    while len(chosen) < BATCH:
        chosen.append(new_fact(Submitted, cause=chosen[-1]))  # one job: one partition
    traffic.send(chosen)
    if not come.wait(30):
        configure(settings, dict.fromkeys(widen, "DEFAULT"))  # or nobody could end
    assert come.is_set()
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


def test_while_the_database_is_stopped_nothing_is_parked_and_all_resumes_by_itself(
    farandole_outages: Stack, farandole_namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Case P7: until the projector has tried in vain twice; with `make prove` for a minute, and the broker goes as well."""
    settings = load_settings(**asdict(farandole_outages.endpoints), namespace=farandole_namespace)
    with projecting(settings) as (_, traffic):
        traffic.send(facts(300, 40))
        farandole_outages.postgres.stop()
        traffic.send(facts(301, 40))
        eventually(lambda: caplog.text.count("waiting seconds=") > 1)
        threading.Event().wait(60 if PROVE else 0)
        unready = typed(settings, "status")
        assert unready.returncode and "Postgres" in unready.stdout + unready.stderr
        if PROVE:
            farandole_outages.kafka.stop()
            farandole_outages.kafka.start()
        traffic.send(facts(302, 40))
        farandole_outages.postgres.start()
        with postgres.connect(settings) as database:
            eventually(lambda: traffic.folded(database), seconds=120)
            traffic.must_be_all(database)
            assert one(database, HELD)
