"""Scripts, rules and faults, as the official client meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import pytest

from farandole.testing import FakeMessages
from farandole.testing.messages import (
    Answer,
    Behaviour,
    Cut,
    Failure,
    Garbage,
    Hang,
    MidStream,
    Slow,
    context_too_long,
    cut_json,
    html,
    no_credit,
    overloaded,
    rate_limited,
    refusal,
    request_too_large,
    server_error,
    truncated,
)
from tests.eventually import eventually
from tests.unit.fake_messages.asking import ASKED, GOOD, ask, failure, hear, text, to


async def test_a_script_comes_before_rules_and_rules_before_the_reply_for_all(fake: FakeMessages) -> None:
    fake.reply(Answer("whatever"))
    fake.rule(lambda body: Answer("a rule") if "rule" in str(body["messages"]) else None)
    fake.script([Answer("first"), Answer("second")])
    ruled = [{"role": "user", "content": "rule"}]
    assert [text(await ask(fake, messages=ruled)) for _ in range(3)] == ["first", "second", "a rule"]
    assert text(await ask(fake)) == "whatever"


@pytest.mark.parametrize("way", [ask, hear])
async def test_an_answer_may_have_everything_a_message_has(fake: FakeMessages, way: Any) -> None:
    usage = {"input_tokens": 7, "output_tokens": 9, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
    fake.script(
        [Answer({"size": "ä"}, thinking="hm, " * 9, stop_reason="stop_sequence", usage=usage, more=("two", ""))]
    )
    message = await way(fake)
    assert [block.type for block in message.content] == ["thinking", "text", "text", "text"]
    assert message.content[0].thinking == "hm, " * 9
    assert message.content[0].signature
    assert json.loads(message.content[1].text) == {"size": "ä"}
    assert [block.text for block in message.content[2:]] == ["two", ""]
    assert message.stop_reason == "stop_sequence"
    assert {name: getattr(message.usage, name) for name in usage} == usage


@pytest.mark.parametrize("way", [ask, hear])
async def test_a_tool_is_called_with_its_input(fake: FakeMessages, way: Any) -> None:
    fake.script([Answer("let me see", tool_use=("weather", {"city": "Rome", "days": [1, 2]}))])
    message = await way(fake)
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert message.content[1].input == {"city": "Rome", "days": [1, 2]}
    assert message.stop_reason == "tool_use"


@pytest.mark.parametrize("way", [ask, hear])
async def test_a_refusal_may_be_silent_and_a_truncated_reply_is_cut(fake: FakeMessages, way: Any) -> None:
    fake.script([refusal(), truncated('{"a": ')])
    silent, cut = await way(fake), await way(fake)
    assert (silent.stop_reason, silent.content, silent.usage.output_tokens) == ("refusal", [], 0)
    assert silent.stop_details.type == "refusal"
    assert (cut.stop_reason, text(cut)) == ("max_tokens", '{"a": ')


@pytest.mark.parametrize(
    ("behaviour", "status", "kind"),
    [
        (rate_limited(171), 429, "rate_limit_error"),
        (overloaded(), 529, "overloaded_error"),
        (server_error(), 500, "api_error"),
        (no_credit(), 400, "invalid_request_error"),
        (no_credit(402), 402, "billing_error"),
        (context_too_long(7, 5), 400, "invalid_request_error"),
        (request_too_large(), 413, "request_too_large"),
        (Failure(403, "permission_error", "no"), 403, "permission_error"),
        (MidStream("overloaded_error"), 529, "overloaded_error"),
    ],
)
async def test_an_error_looks_as_the_apis(fake: FakeMessages, behaviour: Behaviour, status: int, kind: str) -> None:
    error = await failure(fake, behaviour)
    assert error.status_code == status
    assert isinstance(error.body, dict)
    assert (error.body["type"], error.body["error"]["type"]) == ("error", kind)
    assert error.body["request_id"] == error.request_id == fake.calls[0].request_id
    assert (fake.calls[0].status, fake.calls[0].usage, fake.calls[0].whole) == (status, {}, False)


async def test_the_words_by_which_clients_tell_errors_apart_are_the_apis(fake: FakeMessages) -> None:
    """Case M3 needs the header."""
    assert (await failure(fake, rate_limited(171))).response.headers["retry-after"] == "171"
    assert "retry-after" not in (await failure(fake, rate_limited(None))).response.headers
    assert "credit balance is too low" in str(await failure(fake, no_credit()))
    assert "prompt is too long: 7 tokens > 5 maximum" in str(await failure(fake, context_too_long(7, 5)))


async def test_a_stream_ends_with_an_error_event_after_so_many_events(fake: FakeMessages) -> None:
    fake.script([MidStream("overloaded_error", after=4)])
    seen: list[str] = []
    async with to(fake) as client:
        stream = await client.messages.create(**ASKED, stream=True)
        with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
            await _read(stream, lambda event: seen.append(event.type))
    assert seen == ["message_start", "content_block_start", "content_block_delta"]  # the fourth was a ping
    (call,) = fake.calls
    assert (call.behaviour, call.status, call.whole, bool(call.usage)) == ("MidStream", 200, False, True)


@pytest.mark.parametrize("where", ["before", "headers", "body"])
@pytest.mark.parametrize("way", [ask, hear])
async def test_a_cut_connection_is_heard_as_one_and_the_next_call_works(
    fake: FakeMessages, where: Any, way: Any
) -> None:
    fake.script([Cut(where), GOOD])
    with pytest.raises((anthropic.APIConnectionError, anthropic.APIError, httpx2.HTTPError)):
        await way(fake)
    assert text(await way(fake)) == "good"
    assert [call.whole for call in fake.calls] == [False, True]
    assert bool(fake.calls[0].usage) == (where == "body")  # computed, and therefore charged


async def test_a_stream_is_cut_in_the_middle_of_its_events(fake: FakeMessages) -> None:
    fake.script([Cut("body")])
    seen: list[str] = []
    async with to(fake) as client:
        with pytest.raises((anthropic.APIConnectionError, httpx2.HTTPError)):
            await _read(await client.messages.create(**ASKED, stream=True), lambda event: seen.append(event.type))
    assert seen[0] == "message_start"
    assert "message_delta" not in seen


async def test_what_is_no_message_comes_as_it_was_told(fake: FakeMessages) -> None:
    error = await failure(fake, html())
    assert (error.status_code, "Bad gateway" in error.response.text) == (502, True)
    fake.script([cut_json(), Garbage(200, "{}", "application/json")])
    with pytest.raises(ValueError):
        await ask(fake)


async def test_a_call_that_the_client_gives_up_is_counted_as_such(fake: FakeMessages) -> None:
    fake.script([Slow(600, GOOD), Hang(), Hang(after=2)])
    async with to(fake) as client:
        for stream in (False, False, True):
            with pytest.raises((anthropic.APITimeoutError, httpx2.HTTPError)):
                await _read(await client.messages.create(**ASKED, stream=stream, timeout=0.3))
    eventually(lambda: all(call.ended for call in fake.calls), "the end of the calls")
    assert [(call.aborted, call.whole) for call in fake.calls] == [(True, False)] * 3
    assert [bool(call.usage) for call in fake.calls] == [False, False, True]
    assert fake.count == 3


async def _read(stream: Any, each: Callable[[Any], None] = lambda event: None) -> None:
    async for event in stream:
        each(event)


async def test_a_scripted_behaviour_is_not_used_up_by_a_refusal(fake: FakeMessages) -> None:
    fake.script([GOOD])
    with pytest.raises(anthropic.NotFoundError):
        await ask(fake, model="gpt-0")
    assert text(await ask(fake)) == "good"
    assert fake.count == 2


async def test_a_rule_that_raises_fails_the_test() -> None:
    with pytest.raises(ZeroDivisionError), FakeMessages() as fake:
        fake.rule(lambda body: Slow(1 / 0))
        with pytest.raises(anthropic.InternalServerError, match="a rule of the fake failed"):
            await ask(fake)


def test_a_port_that_is_taken_is_told_at_once(fake: FakeMessages) -> None:
    with pytest.raises(OSError), FakeMessages(int(fake.url.rsplit(":", 1)[1])):
        pass
