"""Waiting for jobs: told by the projector, not by looking again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from pydantic import SecretStr

from farandole import Client, WaitTimeout, lookout, postgres, reading
from farandole.errors import Unreachable
from farandole.lookout import Lookout, bucket
from farandole.postgres import Connection
from farandole.reading import Goal
from farandole.settings import Settings
from tests.eventually import eventually
from tests.integration.projection_tables import Folder, one, prepare
from tests.journeys import TOPICS, Blocked, Classified, Done, Fact, Log, Submitted, new_fact, written

FOR_EVER = 3_600.0


class Story:
    """A namespace with a projector that folds what the test tells."""

    def __init__(self, settings: Settings) -> None:
        prepare(settings)
        self.settings, self.log = settings, Log(settings)
        self.folder = Folder(settings, "a", [(topic, 0) for topic in TOPICS])

    async def fold(self, *facts: Fact) -> None:
        records = written(self.log, facts)
        await asyncio.to_thread(self.folder.fold, records)


@pytest.fixture
def story(farandole_settings: Settings) -> Iterator[Story]:
    story = Story(farandole_settings)
    yield story
    story.folder.store.close()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[list[Goal]]:
    """The goals of each statement that looks; nobody looks without being told."""
    seen: list[list[Goal]] = []
    ask = reading.reached_async

    async def counted(connection: Any, goals: Sequence[Goal]) -> Any:
        seen.append(list(goals))
        return await ask(connection, goals)

    monkeypatch.setattr(reading, "reached_async", counted)
    monkeypatch.setattr(lookout, "UNTOLD", FOR_EVER)
    return seen


async def until(condition: Any) -> None:
    await asyncio.to_thread(eventually, condition)


def trace(fact: Fact) -> UUID:
    return UUID(fact.fields["trace_id"])


def beside(fact: Fact, same: bool) -> Fact:
    """The first event of another job, told of by the same channel or by another one."""
    while True:
        other = new_fact(Submitted)
        if (bucket(trace(other)) == bucket(trace(fact))) is same:
            return other


async def test_a_wait_looks_once_and_then_only_when_it_is_told(story: Story, looks: list[list[Goal]]) -> None:
    first = new_fact(Submitted)
    async with Client(story.settings) as client:
        waiting = asyncio.create_task(client.wait(trace(first), timeout=60))
        await until(lambda: looks)
        await story.fold(*(beside(first, same=False) for _ in range(20)))
        await story.fold(first)
        await until(lambda: len(looks) == 2)
        await story.fold(beside(first, same=True))
        await until(lambda: len(looks) == 3)
        await story.fold(new_fact(Done, cause=first))
        job = await waiting
    assert (job.trace_id, job.status, job.data) == (trace(first), "done", job.data)
    assert set(job.data or {}) == {"submitted", "done"}
    assert len(looks) == 4, "one look at the start and one a notification; none for what other channels tell"


async def test_what_was_folded_before_the_wait_is_seen_at_the_first_look(story: Story, looks: list[list[Goal]]) -> None:
    first = new_fact(Submitted)
    await story.fold(first, new_fact(Classified, cause=first), new_fact(Blocked, cause=first))
    async with Client(story.settings) as client:
        assert (await client.wait(trace(first))).status == "blocked"
        assert (await client.wait(trace(first), stage="submitted")).stage == "classified"
        with pytest.raises(WaitTimeout, match=r"did not reach 'done' within 0\.1 s: last seen in stage 'classified'"):
            await client.wait(trace(first), stage="done", timeout=0.1)
    assert len(looks) == 3


async def test_an_event_is_waited_for_whatever_else_became_of_its_job(story: Story, looks: list[list[Goal]]) -> None:
    first = new_fact(Submitted)
    in_hand = new_fact(Classified, cause=first)
    watch = Lookout(story.settings, "farandole agents")
    goal = Goal(trace(first), event_id=UUID(in_hand.fields["event_id"]))
    waiting = asyncio.create_task(watch.until(goal, 60))
    await story.fold(first, new_fact(Done, cause=first))
    await until(lambda: len(looks) == 2)
    await story.fold(in_hand)
    job = await waiting
    await watch.close()
    assert job and (job.events, job.status) == (3, "done")
    assert set(job.data or {}) == {"submitted", "classified", "done"}


async def test_two_thousand_waits_share_a_connection_and_their_looks(
    story: Story, looks: list[list[Goal]], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, connect = [], postgres.connect_async

    async def counted(settings: Settings, **given: Any) -> Any:
        opened.append(given)
        return await connect(settings, **given)

    monkeypatch.setattr(postgres, "connect_async", counted)
    first = [new_fact(Submitted) for _ in range(2_000)]
    async with Client(story.settings) as client:
        waiting = [asyncio.create_task(client.wait(trace(fact), timeout=60)) for fact in first]
        await until(lambda: sum(map(len, looks)) >= 2_000)
        at_first = len(looks)
        await story.fold(*first, *(new_fact(Done, cause=fact) for fact in first))
        done = await asyncio.gather(*waiting)
    assert {job.status for job in done} == {"done"}
    assert at_first == 2, "a thousand a statement"
    assert len(looks) <= 2 * at_first, "told once by one batch, and looked at together"
    assert len(opened) == 1


async def test_a_notification_that_is_lost_is_survived(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "channel", lambda settings, number: "of_somebody_else")
    monkeypatch.setattr(lookout, "UNTOLD", 0.2)
    first = new_fact(Submitted)
    async with Client(story.settings) as client:
        waiting = asyncio.create_task(client.wait(trace(first), timeout=60))
        await story.fold(first)
        await story.fold(new_fact(Done, cause=first))
        assert (await waiting).status == "done"


async def test_a_wait_outlives_its_connection_and_misses_nothing_meanwhile(
    story: Story, looks: list[list[Goal]]
) -> None:
    first = new_fact(Submitted)
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'the cut one'"
    watch = Lookout(story.settings, "the cut one")
    with postgres.connect(story.settings) as database:
        waiting = asyncio.create_task(watch.until(Goal(trace(first), "classified"), 60))
        await until(lambda: looks)
        await story.fold(first)
        assert one(database, cut)
        await story.fold(new_fact(Classified, cause=first))
        job = await waiting
        assert job and job.stage == "classified"
        assert one(database, cut), "it is open, and idle"
        again = await watch.until(Goal(trace(first), "submitted"), 60)
        await watch.close()
    assert again == job


async def test_what_is_told_while_somebody_looks_is_heard(
    story: Story, looks: list[list[Goal]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = new_fact(Submitted)
    await story.fold(first)
    ask, done = reading.reached_async, new_fact(Done, cause=first)

    async def overtaken(connection: Any, goals: Sequence[Goal]) -> Any:
        found = await ask(connection, goals)
        if len(looks) == 2:
            await story.fold(done)
            await connection.execute("SELECT 1")  # its answer brings the notification along
        return found

    monkeypatch.setattr(reading, "reached_async", overtaken)
    async with Client(story.settings) as client:
        waiting = asyncio.create_task(client.wait(trace(first), timeout=20))
        await until(lambda: looks)
        await story.fold(new_fact(Classified, cause=first))
        assert (await waiting).status == "done"
    assert len(looks) == 3


async def test_nobody_listens_where_nobody_waits(story: Story, looks: list[list[Goal]]) -> None:
    first = new_fact(Submitted)
    listening = f"SELECT query FROM pg_stat_activity WHERE application_name = 'the quiet {story.settings.schema_name}'"
    watch = Lookout(story.settings, f"the quiet {story.settings.schema_name}")
    with postgres.connect(story.settings) as database:
        with pytest.raises(TimeoutError):
            await watch.until(Goal(trace(first)), 0.1)
        await until(lambda: "UNLISTEN" in one(database, listening))
    await watch.close()


async def test_a_client_that_goes_in_the_middle_of_a_statement_says_nothing(
    story: Story, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = new_fact(Submitted)
    await story.fold(first, new_fact(Done, cause=first))
    asked = asyncio.Event()

    async def slowly(_watch: Lookout, line: Any) -> None:
        asked.set()
        await line.connection.execute("SELECT pg_sleep(0.1)")

    monkeypatch.setattr(Lookout, "_deafen", slowly)
    async with Client(story.settings) as client:
        assert (await client.wait(trace(first))).status == "done"
        await asked.wait()
    assert [record for record in caplog.records if record.name.startswith("psycopg")] == []


async def test_a_database_that_was_never_there_is_told_at_once(farandole_settings: Settings) -> None:
    away = farandole_settings.model_copy(update={"database_url": SecretStr("postgresql://nobody@127.0.0.1:1/none")})
    watch = Lookout(away, "farandole client")
    with pytest.raises(Unreachable, match="Postgres does not answer"):
        await watch.until(Goal(UUID(int=1)), FOR_EVER)
    await watch.close()


def test_names_of_channels_fit_however_long_the_namespace_is(farandole_settings: Settings) -> None:
    longest = farandole_settings.model_copy(update={"namespace": "n" * 31})
    assert max(len(lookout.channel(longest, number)) for number in range(lookout.BUCKETS)) <= 63


def test_a_batch_tells_of_each_channel_once_and_a_batch_of_duplicates_of_none(story: Story) -> None:
    facts = [new_fact(Submitted) for _ in range(500)]
    with postgres.connect(story.settings) as database:
        for number in range(lookout.BUCKETS):
            name = postgres.sql.Identifier(lookout.channel(story.settings, number))
            database.execute(postgres.sql.SQL("LISTEN {}").format(name))
        story.folder.fold(written(story.log, facts))
        told = heard(database)
        story.folder.fold(written(story.log, facts))
        again = heard(database)
    assert sorted(told) == sorted({lookout.channel(story.settings, bucket(trace(fact))) for fact in facts})
    assert again == []


def heard(database: Connection[Any]) -> list[str]:
    return [notice.channel for notice in database.notifies(timeout=1.0, stop_after=lookout.BUCKETS)]
