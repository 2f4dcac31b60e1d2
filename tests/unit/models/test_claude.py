"""Whatever a server sends, a call ends with a reply or with one ModelError."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farandole.models.assembling import Assembly, Broken, ErrorEvent
from farandole.models.claude import Claude, refused
from farandole.models.errors import (
    BadRequest,
    ConnectionFailed,
    ContextTooLong,
    ModelError,
    NoCredit,
    NotAllowed,
    Overloaded,
    RateLimited,
    ServerFailed,
    StreamCut,
    TimedOut,
)
from farandole.models.retry_after import retry_after
from farandole.models.values import Heard, Reply, Request
from farandole.testing.messages import (
    Answer,
    Behaviour,
    Cut,
    FakeMessages,
    Garbage,
    MidStream,
    Slow,
    bad_request,
    context_too_long,
    no_credit,
    overloaded,
    rate_limited,
    server_error,
)

MESSAGE = {
    "type": "message",
    "model": "m",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


async def send(url: str, stream: bool = False, seconds: float = 20) -> tuple[Reply, Heard]:
    claude = Claude("key", url)
    body = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
    try:
        return await claude.send(Request("claude-haiku-4-5", 9, body, stream, seconds), "the-key")
    finally:
        await claude.close()


@asynccontextmanager
async def server(raw: bytes) -> AsyncIterator[str]:
    """Sends `raw` to whoever asks, and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()
        writer.close()

    found = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with found:
        yield f"http://127.0.0.1:{found.sockets[0].getsockname()[1]}"


def http(body: bytes, status: int = 200, kind: str = "application/json", length: int | None = None) -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nrequest-id: req_1\r\n"
    return f"{head}content-length: {len(body) if length is None else length}\r\n\r\n".encode() + body


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_comes_with_what_the_response_said_beside_it(stream: bool) -> None:
    with FakeMessages() as fake:
        fake.script([Answer("the text", more=("more",)), Answer(thinking="hm", tool_use=("look", {"id": 7}))])
        reply, heard = await send(fake.url, stream)
        other, _ = await send(fake.url, stream)
    assert [block["text"] for block in reply.content] == ["the text", "more"]
    assert (other.content[0]["thinking"], other.content[1]["input"]) == ("hm", {"id": 7})
    assert (reply.stop_reason, other.stop_reason, heard.status) == ("end_turn", "tool_use", 200)
    assert reply.usage.output_tokens == fake.calls[0].usage["output_tokens"]
    assert reply.request_id == heard.headers["request-id"]
    assert fake.calls[0].headers["idempotency-key"] == "the-key"


FAILURES: list[tuple[Behaviour, type[ModelError]]] = [
    (rate_limited(171), RateLimited),
    (overloaded(), Overloaded),
    (server_error(), ServerFailed),
    (no_credit(), NoCredit),
    (context_too_long(), ContextTooLong),
    (bad_request(), BadRequest),
    (bad_request("input length and `max_tokens` exceed context limit: 9 + 9 > 10"), ContextTooLong),
    (Garbage(), ServerFailed),
    (Garbage(401, "<html>"), NotAllowed),
    (Cut("before"), ConnectionFailed),
    (Cut("headers"), ConnectionFailed),
    (Cut("body"), StreamCut),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("behaviour", "expected"), FAILURES)
async def test_every_failure_has_its_error_and_is_one_call(
    behaviour: Behaviour, expected: type[ModelError], stream: bool
) -> None:
    """Case M1: nothing below us tries again."""
    with FakeMessages() as fake:
        fake.script([behaviour])
        with pytest.raises(ModelError) as caught:
            await send(fake.url, stream)
        assert (type(caught.value), fake.count) == (expected, 1)


async def test_a_server_that_wants_to_be_left_alone_is_heard() -> None:
    """Case M3."""
    with FakeMessages() as fake:
        fake.script([rate_limited(171)])
        with pytest.raises(RateLimited) as caught:
            await send(fake.url)
    assert (caught.value.after, caught.value.headers["retry-after"]) == (171.0, "171")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("overloaded_error", Overloaded), ("api_error", ServerFailed), ("rate_limit_error", RateLimited)],
)
async def test_an_error_in_the_middle_of_a_stream_is_that_error(kind: str, expected: type[ModelError]) -> None:
    with FakeMessages() as fake:
        fake.script([MidStream(kind)])
        with pytest.raises(expected):
            await send(fake.url, stream=True)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_silent_server_is_left(stream: bool) -> None:
    with FakeMessages() as fake:
        fake.script([Slow(60)])
        with pytest.raises(TimedOut):
            await send(fake.url, stream, seconds=0.2)


async def test_where_nobody_listens_nothing_was_sent() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionFailed) as caught:
            await send(f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert caught.value.unsent


BODIES = [
    b"", b"null", b"[]", b"{}", b"[" * 100_000, b'{"type": "message"', b"\xff\xfe", b'{"type":"error","error":{"type":"x"}}',
    json.dumps({**MESSAGE, "content": None}).encode(), json.dumps({**MESSAGE, "usage": None}).encode(),
    json.dumps({**MESSAGE, "usage": {"input_tokens": "many"}}).encode(),
]  # fmt: skip
EVENTS = [
    b"data: [" + b"[" * 100_000 + b"\n\n", b"data: null\n\n", b"data: {}\n\n", b"event: message_stop\n\n",
    b'data: {"type": "message_stop"}\n\n', b'data: {"type": "message_start", "message": 7}\n\n',
    b'data: {"type": "content_block_delta", "index": 4, "delta": {}}\n\n', b'data: {"type": "error"}\n\n',
    b'data: {"type": "error", "error": "x"}\n\n', b'data: {"type": ["x"]}\n\n',
]  # fmt: skip


@pytest.mark.parametrize("raw", [http(body) for body in BODIES] + [http(b"{}", length=99), b"SSH-2.0\r\n\r\n"])
async def test_a_body_that_is_none_is_a_failure_of_the_server(raw: bytes) -> None:
    async with server(raw) as url:
        with pytest.raises((ServerFailed, StreamCut, ConnectionFailed)):
            await send(url)


@pytest.mark.parametrize("body", EVENTS + BODIES)
async def test_a_stream_that_is_none_is_a_failure_of_the_server(body: bytes) -> None:
    async with server(http(body, kind="text/event-stream")) as url:
        with pytest.raises((ServerFailed, StreamCut)):
            await send(url, stream=True)


async def test_a_text_that_cannot_be_kept_is_made_one_that_can() -> None:
    text = {"type": "text", "text": "a\0b\ud800"}
    async with server(http(json.dumps({**MESSAGE, "content": [text]}).encode())) as url:
        reply, _ = await send(url)
    assert reply.content[0]["text"] == "a\ufffdb\ufffd"


@given(st.binary(max_size=300), st.sampled_from([200, 204, 304, 400, 429, 500, 529]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_bytes_of_a_server_escape_as_another_error(body: bytes, status: int, stream: bool) -> None:
    async def once() -> None:
        async with server(http(body, status)) as url:
            with pytest.raises(ModelError):
                await send(url, stream)

    asyncio.run(once())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
KEYS = ["type", "index", "delta", "message", "content_block", "text", "partial_json", "usage", "error"]
NAMES = ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "error"]
EVENT = st.dictionaries(
    st.sampled_from(KEYS), JSON | st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3), max_size=5
)


@given(st.lists(st.tuples(st.sampled_from(NAMES), EVENT), max_size=6))
def test_no_events_break_the_assembly_but_in_its_own_way(events: list[tuple[str, dict[str, Any]]]) -> None:
    assembly = Assembly()
    with pytest.raises((Broken, ErrorEvent)):
        for name, event in events:
            assembly.feed(b"data: " + json.dumps({**event, "type": name}).encode() + b"\n\n")
        assembly.message()


@given(st.integers(1, 40))
def test_a_stream_is_the_same_in_chunks_of_any_size(size: int) -> None:
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {**MESSAGE, "content": [], "usage": {"input_tokens": 3, "output_tokens": 1}},
        },
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a\u2028b"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    raw = b"".join(b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\r\n\r\n" for event in events)
    assembly = Assembly()
    for at in range(0, len(raw), size):
        assembly.feed(raw[at : at + size])
    found = assembly.message()
    assert (found["content"], found["stop_reason"]) == ([{"type": "text", "text": "a\u2028b"}], "max_tokens")
    assert found["usage"] == {"input_tokens": 3, "output_tokens": 9}


@pytest.mark.parametrize(
    ("status", "expected"),
    [(402, NoCredit), (403, NotAllowed), (404, NotAllowed), (408, TimedOut), (409, ServerFailed), (413, ContextTooLong),
     (422, BadRequest), (503, ServerFailed), (529, Overloaded)],
)  # fmt: skip
def test_a_status_says_what_happens_next(status: int, expected: type[ModelError]) -> None:
    assert type(refused(status, None, {})) is expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("2", 2.0),
        ("0.5", 0.5),
        ("nan", None),
        ("-1", None),
        ("soon", None),
        ("inf", 366 * 86_400),
        ("Mon, 99 Foo", None),
    ],
)
def test_seconds_are_read_and_nonsense_is_not(said: str, expected: float | None) -> None:
    assert retry_after({"retry-after": said}) == expected


@pytest.mark.parametrize("written", [lambda at: format_datetime(at, usegmt=True), datetime.isoformat])
def test_a_date_is_read_as_seconds_from_now(written: Callable[[datetime], str]) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after({"retry-after": written(now + timedelta(seconds=30))}, now) == 30.0
