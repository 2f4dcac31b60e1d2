"""stage_times, throughput and failures: the tables of the oracle, whatever comes in whatever order, and readable views."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from farandole import postgres, projections
from farandole.contracts import codec
from farandole.event import Event
from farandole.postgres import Connection
from farandole.project import find_project
from farandole.projector.rows import Rows
from farandole.settings import Settings
from tests import journeys, oracle
from tests.integration.projection_tables import Folder, failures, one, places, prepare, stage_counts, throughput
from tests.journeys import START, Classified, Done, Fact, GaveUp, Log, Submitted, facts, new_fact, written

SHIPPED = ("stage_times", "throughput", "failures")
TABLES = ("stage_times", "stage_times_counts", "stage_times_early", "throughput", "failures")


class Refused(Event, topic="jobs.dead_lettered", blocks=True):
    """A dead letter as the runtime writes it, as far as the fold looks."""

    text: str
    agent: str
    cause: str
    error: str


class Ended(Event, topic="jobs.done", terminal="failed"):
    text: str
    reason: str
    detail: str | None = None


class JobDiscarded(Event, topic="jobs.done", terminal="failed"):
    text: str
    agent: str
    reason: str


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


def folder(settings: Settings, topics: Iterable[tuple[str, int]]) -> Folder:
    """One that knows this module's events, too."""
    found, schemas = Folder(settings, "a", sorted(topics)), journeys.schemas(settings)
    for event in (Refused, Ended, JobDiscarded):
        schemas.add(codec.contract(event, settings.flow).writer)
    found.rows = Rows(schemas, settings)
    return found


def claim(connection: Connection[Any], claims: oracle.Claims) -> None:
    with connection.cursor().copy("COPY step (event_id, agent, run, created_at) FROM STDIN") as rows:
        for (event_id, agent, run), at in claims.items():
            rows.write_row((event_id, agent, run, at))


def claims_of(chosen: Iterable[Fact], chance: random.Random) -> oracle.Claims:
    """Of most events, in the run they have and in the next: before the event, after it, long after."""
    keys = [(fact.fields["event_id"], "agent", fact.fields["run"] + more) for fact in chosen for more in (0, 1)]
    shown = datetime.fromtimestamp(START / 1e6, UTC)
    return {key: shown + timedelta(microseconds=chance.randrange(200_000_000)) for key in keys if chance.random() < 0.7}


def failing(chance: random.Random, count: int) -> list[Fact]:
    """Events that say what failed, of several agents, for several causes, some at the same time."""
    made: list[Fact] = []
    for number in range(count):
        said = {"agent": chance.choice("ab"), "reason": chance.choice("xy" * 3 + "z") * chance.choice([1, 300])}
        kinds: list[tuple[type[Event], Mapping[str, Any]]] = [
            (Refused, {"agent": said["agent"], "cause": said["reason"], "error": f"no {number}"}),
            (Ended, {"reason": said["reason"], "detail": chance.choice([None, f"since {number}"])}),
            (JobDiscarded, said),
            (GaveUp, {}),
        ]
        event, payload = chance.choice(kinds)
        made.append(Fact(event, new_fact(event, occurred_at=START + chance.randrange(9)).fields, dict(payload)))
    return made


@pytest.mark.parametrize("seed", range(2))
def test_duplicates_in_any_order_and_batching_give_the_tables_of_the_oracle(
    seed: int, farandole_settings: Settings, database: Connection[Any]
) -> None:
    chance, log = random.Random(seed), Log(farandole_settings)
    chosen = [*facts(seed, 50), *failing(chance, 40)]
    claims = claims_of(chosen, chance)
    claim(database, claims)
    again = [*chosen, *chance.choices(chosen, k=len(chosen) // 2)]
    chance.shuffle(again)
    records = [log.append(fact.event, fact.fields, chance.randrange(3), **fact.payload) for fact in again]
    projector = folder(farandole_settings, places(records, farandole_settings))
    while records:
        size = chance.choice([1, 2, 7, 40])
        projector.fold(records[:size])
        records = records[size:]
    happened = [fact.happened for fact in again]
    assert stage_counts(database) == oracle.stage_counts(happened, claims)
    assert throughput(database) == oracle.throughput(happened)
    assert failures(database) == oracle.failures(happened)
    assert one(database, "SELECT count(*) FROM stage_times_early") == 0
    live = _rows(database)
    assert _pieces(database, chance) == live


def _rows(connection: Connection[Any]) -> dict[str, list[Any]]:
    return {
        table: connection.execute(postgres.script(f"SELECT t::text FROM {table} AS t ORDER BY 1")).fetchall()
        for table in TABLES
    }


def _pieces(connection: Connection[Any], chance: random.Random) -> dict[str, list[Any]]:
    """The tables as folded anew, through an event_log that has everything from the beginning, piece by piece."""
    ids = [row[0] for row in connection.execute("SELECT event_id FROM event_log").fetchall()]
    chance.shuffle(ids)
    folds = [projections.read(projections.packaged() / name).fold for name in SHIPPED]
    connection.execute("CREATE TEMP TABLE new_events (LIKE event_log)")
    connection.execute(postgres.script("TRUNCATE " + ", ".join(TABLES)))
    for start in range(0, len(ids), 9):
        connection.execute("TRUNCATE new_events")
        piece = ids[start : start + 9]
        connection.execute("INSERT INTO new_events SELECT * FROM event_log WHERE event_id = ANY(%s)", [piece])
        for fold in folds:
            connection.execute(postgres.script(fold), prepare=False)
    return _rows(connection)


def test_a_cause_that_comes_after_its_effect_is_counted_with_it_once(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """All 6 orders and 4 splits of a journey of three, each as a job of its own."""
    claims: dict[tuple[str, str, int], datetime] = {}
    parts: list[list[Fact]] = [[], [], []]
    for order in itertools.permutations(range(3)):
        for cuts in itertools.product((0, 1), repeat=2):
            first = new_fact(Submitted, occurred_at=START)
            second = new_fact(Classified, cause=first, occurred_at=START + 3_000_000)
            journey = [first, second, new_fact(Done, cause=second, occurred_at=START + 7_000_000)]
            claims[first.fields["event_id"], "agent", 0] = datetime.fromtimestamp(START / 1e6 + 1, UTC)
            for place, cut in zip(order, itertools.accumulate((0, *cuts)), strict=True):
                parts[cut].append(journey[place])
    claim(database, claims)
    projector = folder(farandole_settings, [(topic, 0) for topic in journeys.TOPICS])
    log = Log(farandole_settings)
    for part in parts:
        projector.fold(written(log, part))
    found = {(stage, bucket): counts for (stage, _, bucket), counts in stage_counts(database).items()}

    def at(seconds: int) -> int:
        return oracle.bucket(timedelta(seconds=seconds))

    assert found == {
        ("classified", at(3)): oracle.Lengths(whole=24, longest=timedelta(seconds=3)),
        ("classified", at(1)): oracle.Lengths(waiting=24),
        ("classified", at(2)): oracle.Lengths(working=24),
        ("done", at(4)): oracle.Lengths(whole=24, longest=timedelta(seconds=4)),
    }


def test_the_percentiles_of_a_day_and_of_days_together_are_at_most_6_3_percent_off(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    chance = random.Random(5)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    lengths: dict[int, list[float]] = {0: [], 1: [], 9: []}
    chosen: list[Fact] = []
    for days_ago, made in lengths.items():
        end = int((today - timedelta(days=days_ago)).timestamp() * 1_000_000)
        for _ in range(101):
            made.append(round(chance.lognormvariate(-2 - days_ago, 2), 6))
            first = new_fact(Submitted, occurred_at=end - int(made[-1] * 1_000_000))
            chosen += [first, new_fact(Done, cause=first, occurred_at=end)]
    records = written(Log(farandole_settings), chosen)
    folder(farandole_settings, places(records, farandole_settings)).fold(records)

    def check(row: Any, made: list[float]) -> None:
        made = sorted(made)
        p50, p95, longest = (value.total_seconds() for value in row)
        assert p50 == pytest.approx(made[len(made) // 2], rel=0.063, abs=0.001)
        assert p95 == pytest.approx(made[int(len(made) * 0.95)], rel=0.063, abs=0.001)
        assert longest == pytest.approx(made[-1], abs=0.001)

    rows = database.execute("SELECT p50, p95, longest FROM stage_durations ORDER BY day DESC").fetchall()
    for row, made in zip(rows, lengths.values(), strict=True):
        check(row, made)
    (week,) = database.execute("SELECT p50, p95, longest FROM stage_durations_week").fetchall()
    check(week, lengths[0] + lengths[1])


def test_a_claim_of_a_later_run_changes_nothing_of_an_earlier_one(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    first = new_fact(Submitted, occurred_at=START)
    second = new_fact(Classified, cause=first, occurred_at=START + 3_000_000)
    claims = {(first.fields["event_id"], "agent", 0): datetime.fromtimestamp(START / 1e6 + 1, UTC)}
    claim(database, claims)
    records = written(Log(farandole_settings), [first, second])
    folder(farandole_settings, places(records, farandole_settings)).fold(records)
    live = stage_counts(database)
    claim(database, {(first.fields["event_id"], "agent", 1): datetime.fromtimestamp(START / 1e6 + 2, UTC)})
    projections.refold(farandole_settings, projections.discover(find_project()), "stage_times")
    assert stage_counts(database) == live == oracle.stage_counts([first.happened, second.happened], claims)


def test_the_last_hour_and_what_fails_read_well(farandole_settings: Settings, database: Connection[Any]) -> None:
    now = int(datetime.now(UTC).timestamp() * 1_000_000)
    first = new_fact(Submitted, occurred_at=now)
    told = {"agent": "act", "cause": "attempts", "error": "no route"}
    refused = Fact(Refused, new_fact(Refused, cause=first, occurred_at=now).fields, told)
    records = written(Log(farandole_settings), [first, refused])
    folder(farandole_settings, places(records, farandole_settings)).fold(records)
    rows = database.execute("SELECT events, begun, done, failed, blocked FROM throughput_hour").fetchall()
    assert len(rows) == 60 and [sum(column) for column in zip(*rows, strict=True)] == [2, 1, 0, 0, 1]
    shown = database.execute("SELECT agent, outcome, cause, times, last_job::text, last_error FROM failing").fetchall()
    assert shown == [("act", "blocked", "attempts", 1, first.fields["trace_id"], "no route")]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_fold_to_learn_from_has_at_most_30_lines_of_sql(name: str) -> None:
    lines = projections.read(projections.packaged() / name).fold.splitlines()
    assert len([line for line in lines if line.strip() and not line.strip().startswith("--")]) <= 30
