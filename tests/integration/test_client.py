"""The client submits once a key, many without reading ahead, and says how jobs stand."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psutil
import pytest

from farandole import Client, Event, Submission, WaitTimeout, kafka, topics
from farandole.contracts.lookup import Schemas
from farandole.contracts.schema_log import SCHEMA_TOPIC
from farandole.envelope import Envelope
from farandole.errors import ConfigurationError, ExitCode, FarandoleError, Unreachable
from farandole.project import Project, require_project
from farandole.records import decode, schema_keys, writer_of
from farandole.sender import MAX_EVENT_BYTES, Chunk
from farandole.settings import Settings
from farandole.testing import running_flow
from tests.eventually import eventually

AGENT = """
from farandole import Agent, Context, Event, Fail

class Asked(Event, topic="jobs.asked", stage="asked", ingest=True):
    text: str

class Answered(Event, topic="jobs.answered", stage="answered", terminal="done"):
    text: str
    seen: str

agent = Agent("answer")

@agent.handle
async def answer(asked: Asked, ctx: Context) -> Answered:
    job = await ctx.job()
    if asked.text == "fail":
        raise Fail("asked_to")
    return Answered(text=asked.text, seen=job.data[job.stage]["text"])
"""


class Asked(Event, topic="jobs.asked", stage="asked", ingest=True):
    text: str


def records(settings: Settings, topic: str, count: int) -> list[kafka.Record]:
    """The first `count` records of a topic, within the deadline."""
    reader = kafka.consumer(settings, settings.group(uuid4().hex))
    name = settings.topic(topic)
    partitions = kafka.check_broker(settings)[name]
    reader.assign([kafka.TopicPartition(name, number, kafka.OFFSET_BEGINNING) for number in range(partitions)])
    found: list[kafka.Record] = []

    def enough() -> bool:
        found.extend(kafka.record_of(message) for message in reader.consume(1000, 0.2) if not message.error())
        return len(found) >= count

    eventually(enough, f"{count} records in {name}")
    reader.close()
    return found


async def test_a_submitted_job_is_on_the_broker_with_its_schema_when_submit_returns(
    farandole_settings: Settings,
) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    async with Client(farandole_settings) as client:
        trace_id = await client.submit(Asked(text="hello"), key="k", at=at, tenant="acme")
    (record,) = await asyncio.to_thread(records, farandole_settings, "jobs.asked", 1)
    assert record.key == str(trace_id).encode()
    schemas = Schemas(farandole_settings)
    schemas.learn(schema_keys([record]))
    writer = writer_of(record, schemas)
    fields = decode(record, writer, farandole_settings).fields
    envelope = Envelope(fields)
    assert (writer.name, fields["text"], envelope.trace_id) == ("jobs.Asked", "hello", trace_id)
    assert (envelope.tenant, envelope.emitted_by, envelope.hop) == ("acme", "client", 0)
    assert trace_id.int >> 80 == int(at.timestamp() * 1000)


async def test_the_same_key_is_the_same_job_and_the_same_event(farandole_settings: Settings) -> None:
    async with Client(farandole_settings) as client:
        first = await client.submit(Asked(text="one"), key="k")
        again = await client.submit(Asked(text="two"), key="k")
        other = await client.submit(Asked(text="one"), key="k", tenant="t")
        fresh = [await client.submit(Asked(text="one")) for _ in range(2)]
    assert first == again
    assert len({first, other, *fresh}) == 4


async def test_many_are_sent_without_reading_far_ahead(farandole_settings: Settings) -> None:
    drawn = 0

    def rows(count: int) -> Iterator[Submission]:
        nonlocal drawn
        for number in range(count):
            drawn += 1
            yield Submission(Asked(text=f"{number}"), key=f"{number}")

    async with Client(farandole_settings) as client:
        await client.submit(Asked(text="first"))
        seen: list[UUID] = []
        async for trace_id in client.submit_many(rows(20_000)):
            seen.append(trace_id)
            assert drawn - len(seen) <= 10 * 500
    assert len(set(seen)) == 20_000
    found = await asyncio.to_thread(records, farandole_settings, "jobs.asked", 20_001)
    assert {record.key for record in found} >= {str(trace_id).encode() for trace_id in seen}


async def test_an_error_among_the_rows_comes_after_what_was_before_it(farandole_settings: Settings) -> None:
    def rows() -> Iterator[Submission]:
        for number in range(1_234):
            yield Submission(Asked(text=f"{number}"))
        raise FarandoleError("line 1235 is wrong")

    sent = 0
    async with Client(farandole_settings) as client:
        with pytest.raises(FarandoleError, match="line 1235"):
            async for _ in client.submit_many(rows()):
                sent += 1
    assert sent == 1_234
    assert len(await asyncio.to_thread(records, farandole_settings, "jobs.asked", sent)) == sent


@pytest.mark.parametrize("size", [MAX_EVENT_BYTES + 1, 1_500_000])
async def test_an_event_that_is_too_large_is_named_and_does_not_take_others_with_it(
    farandole_settings: Settings, size: int
) -> None:
    """Over the producer's limit, and over the topic's: there the chunk it is in fails."""
    noise = random.Random(1).randbytes(size).hex()[:size]  # does not compress below the topic's limit
    rows = [Submission(Asked(text=text)) for text in [*["small"] * 500, noise]]
    sent: list[UUID] = []
    async with Client(farandole_settings) as client:
        with pytest.raises(
            FarandoleError, match=r"too large(: [\d,]+ bytes, at most 2,\d+,\d+|; its limit is the topic's)"
        ):
            async for trace_id in client.submit_many(rows):
                sent.append(trace_id)  # noqa: PERF401  a comprehension would lose those before the error
    assert len(sent) == 500


async def test_a_full_queue_makes_submitting_slower_not_wrong(
    farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = kafka.producer
    small: dict[str, Any] = {"queue.buffering.max.messages": 10}
    monkeypatch.setattr(kafka, "producer", lambda settings, *_, **extra: make(settings, None, **extra, **small))
    async with Client(farandole_settings) as client:
        sent = [one async for one in client.submit_many(Submission(Asked(text="x")) for _ in range(100))]
    assert len(set(sent)) == 100


async def test_the_event_loop_runs_on_while_acknowledgements_are_awaited(
    farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, gate = threading.Event(), threading.Event()
    opened: list[bool] = []
    answer = Chunk.answer

    def late(chunk: Chunk, error: Any, message: Any) -> None:
        """The broker's answer comes once another task has had fifty turns."""
        held.set()
        opened.append(gate.wait(0 if opened else 20))
        answer(chunk, error, message)

    async def other() -> None:
        await asyncio.to_thread(held.wait, 20)
        for _ in range(50):
            await asyncio.sleep(0.001)
        gate.set()

    async with Client(farandole_settings) as client:
        await client.submit(Asked(text="first"))
        monkeypatch.setattr(Chunk, "answer", late)
        beside = asyncio.ensure_future(other())
        sent = [one async for one in client.submit_many(Submission(Asked(text="x")) for _ in range(1_000))]
        await beside
    assert len(set(sent)) == 1_000
    assert all(opened)


async def test_without_a_broker_submitting_says_so(
    farandole_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "ANSWER", 1.0)
    async with Client(farandole_settings.model_copy(update={"kafka_bootstrap_servers": "127.0.0.1:1"})) as client:
        with pytest.raises(Unreachable, match="no Kafka broker answers"):
            await client.submit(Asked(text="x"))


async def test_without_a_projection_a_job_is_unknown_and_waiting_ends(farandole_settings: Settings) -> None:
    async with Client(farandole_settings) as client:
        trace_id = uuid4()
        assert await client.job(trace_id) is None
        assert await client.journey(trace_id) == []
        with pytest.raises(WaitTimeout, match="is a projector running") as raised:
            await client.wait(trace_id, timeout=0.3)
        assert isinstance(raised.value, TimeoutError)
        assert raised.value.job is None


async def test_a_topic_that_must_not_be_created_is_named_with_the_command_that_does(
    farandole_settings: Settings,
) -> None:
    topics.ensure(farandole_settings, [topics.Wanted(SCHEMA_TOPIC, 1)])
    async with Client(farandole_settings.model_copy(update={"create_topics": False})) as client:
        with pytest.raises(FarandoleError, match=r"topics are missing: \S+jobs\.asked; create them") as raised:
            await client.submit(Asked(text="x"))
    assert raised.value.exit_code == ExitCode.NOT_FOUND


async def test_what_is_no_job_id_is_refused_before_the_database_is_asked(farandole_settings: Settings) -> None:
    async with Client(farandole_settings) as client:
        with pytest.raises(FarandoleError, match="'00000000' is no job id; expected a UUID"):
            await client.wait("00000000")  # type: ignore[arg-type]


async def test_a_value_that_does_not_fit_the_schema_is_refused_before_anything_is_sent(
    farandole_settings: Settings,
) -> None:
    async with Client(farandole_settings) as client:
        with pytest.raises(ConfigurationError, match=r"jobs\.Asked does not fit its schema"):
            await client.submit(Asked.model_construct(text=None))  # type: ignore[arg-type]


@pytest.fixture
def flow(tmp_path: Path) -> Project:
    (tmp_path / "pyproject.toml").write_text('[tool.farandole]\nflow = "jobs"\n')
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "answer.py").write_text(AGENT)
    return require_project(tmp_path)


async def test_waiting_follows_a_job_to_a_stage_and_to_its_end(farandole_settings: Settings, flow: Project) -> None:
    with running_flow(farandole_settings, root=flow.root) as children:
        async with Client(farandole_settings) as client:
            good, bad = await client.submit(Asked(text="hello")), await client.submit(Asked(text="fail"))
            asked = await client.wait(good, stage="asked", timeout=60)
            done, failed = await asyncio.gather(client.wait(good, timeout=60), client.wait(bad, timeout=60))
            journey = await client.journey(good)
            with pytest.raises(WaitTimeout, match="last seen in stage 'answered', done"):
                await client.wait(good, stage="never", timeout=0.2)
        pids = children.pids
    assert asked.trace_id == good
    assert (done.status, done.stage, failed.status) == ("done", "answered", "failed")
    assert done.data == {"asked": {"text": "hello"}, "answered": {"text": "hello", "seen": "hello"}}
    assert [row.stage for row in journey] == ["asked", "answered"]
    assert set(pids) == {"answer", "projector"}
    assert not any(psutil.pid_exists(pid) for pid in pids.values())
