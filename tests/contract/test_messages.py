"""The Messages API through its official client: the fake keeps the same contract as the real one.

With ANTHROPIC_API_KEY in the environment the contract is checked against the real API too, for a few hundred tokens.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Literal

import anthropic
import pytest
from pydantic import BaseModel, Field

from farandole.testing import FakeMessages

MODEL = "claude-haiku-5-5"
REAL = "https://api.anthropic.com"
BOTH = ["fake", "real"] if os.environ.get("ANTHROPIC_API_KEY") else ["fake"]
SAY_OK: Any = {"model": MODEL, "max_tokens": 64, "messages": [{"role": "user", "content": "Say OK, nothing else."}]}


class Place(BaseModel):
    """With what pydantic writes differently: a nested class, an enumeration, something optional, a list."""

    name: str
    country: str | None


class Triage(BaseModel):
    kind: Literal["refund", "question"]
    urgency: int = Field(ge=1, le=5)
    place: Place
    words: list[str]


@pytest.fixture(params=BOTH)
async def client(request: pytest.FixtureRequest) -> AsyncIterator[anthropic.AsyncAnthropic]:
    if request.param == "real":
        async with anthropic.AsyncAnthropic(base_url=REAL, max_retries=0) as real:
            yield real
    else:
        with FakeMessages(keys={"test"}, models={MODEL}) as fake:
            async with anthropic.AsyncAnthropic(api_key="test", base_url=fake.url, max_retries=0) as client:
                yield client


async def test_a_message_is_whole(client: anthropic.AsyncAnthropic) -> None:
    message = await client.messages.create(**SAY_OK)
    assert (message.type, message.role, message.stop_reason) == ("message", "assistant", "end_turn")
    assert message.id.startswith("msg_")
    assert message.model.startswith(MODEL)
    assert [block.type for block in message.content] == ["text"]
    assert message.usage.input_tokens > 0
    assert 0 < message.usage.output_tokens <= 64
    assert message._request_id is not None
    assert message._request_id.startswith("req_")


async def test_a_stream_comes_to_the_same_message(client: anthropic.AsyncAnthropic) -> None:
    async with client.messages.stream(**SAY_OK) as stream:
        message = await stream.get_final_message()
    assert message.stop_reason == "end_turn"
    assert "OK" in "".join(block.text for block in message.content if block.type == "text")
    assert message.usage.output_tokens > 0


async def test_raw_events_follow_one_another_as_the_api_writes_them(client: anthropic.AsyncAnthropic) -> None:
    stream = await client.messages.create(**SAY_OK, stream=True)
    events = [event async for event in stream]
    types = [event.type for event in events]
    assert types[0] == "message_start"
    assert types[1] == "content_block_start"
    assert types[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(types[2:-3]) == {"content_block_delta"}
    started = events[0]
    assert started.type == "message_start"
    assert (started.message.content, started.message.stop_reason) == ([], None)
    assert started.message.usage.input_tokens > 0


async def test_structured_output_fits_its_schema(client: anthropic.AsyncAnthropic) -> None:
    form = {"type": "json_schema", "schema": anthropic.transform_schema(Triage)}
    message = await client.messages.create(**{**SAY_OK, "max_tokens": 300}, output_config={"format": form})  # type: ignore[call-overload]
    assert message.content[-1].type == "text"
    Triage.model_validate_json(message.content[-1].text)


async def test_structured_output_may_be_streamed(client: anthropic.AsyncAnthropic) -> None:
    form: Any = {"type": "json_schema", "schema": anthropic.transform_schema(Triage)}
    async with client.messages.stream(**{**SAY_OK, "max_tokens": 300}, output_config={"format": form}) as stream:
        message = await stream.get_final_message()
    assert message.content[-1].type == "text"
    Triage.model_validate_json(message.content[-1].text)


async def test_a_reply_tells_its_limits(client: anthropic.AsyncAnthropic) -> None:
    raw = await client.messages.with_raw_response.create(**SAY_OK)
    for what in ("requests", "input-tokens", "output-tokens"):
        prefix = f"anthropic-ratelimit-{what}"
        assert int(raw.headers[f"{prefix}-limit"]) >= int(raw.headers[f"{prefix}-remaining"]) >= 0
        assert datetime.fromisoformat(raw.headers[f"{prefix}-reset"]).tzinfo is not None
    assert raw.headers["request-id"].startswith("req_")
    assert raw.headers["content-type"] == "application/json"


async def test_tokens_are_counted_without_a_call(client: anthropic.AsyncAnthropic) -> None:
    counted = await client.messages.count_tokens(model=MODEL, messages=SAY_OK["messages"])
    message = await client.messages.create(**SAY_OK)
    assert abs(counted.input_tokens - message.usage.input_tokens) <= 20


@pytest.mark.parametrize(
    ("change", "status", "kind", "words"),
    [
        ({"messages": []}, 400, "invalid_request_error", "at least one message is required"),
        ({"extra_body": {"max_tokens": None}}, 400, "invalid_request_error", "max_tokens"),
        ({"max_tokens": 0}, 400, "invalid_request_error", "max_tokens"),
        ({"extra_body": {"colour": "red"}}, 400, "invalid_request_error", "colour: Extra inputs are not permitted"),
        ({"model": "claude-nobody-0-0"}, 404, "not_found_error", "model"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, 400, "invalid_request_error", "role"),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "properties": {}}}}},
            400,
            "invalid_request_error",
            "additionalProperties",
        ),
    ],
)
async def test_a_request_that_is_none_is_refused_in_the_apis_words(
    client: anthropic.AsyncAnthropic,
    change: dict[str, Any],
    status: int,
    kind: str,
    words: str,
) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        await client.messages.create(**{**SAY_OK, **change})
    error = caught.value
    assert (error.status_code, error.type) == (status, kind)
    assert isinstance(error.body, dict)
    assert error.body["type"] == "error"
    assert words in error.body["error"]["message"]
    assert error.body["request_id"] == error.request_id


async def test_a_wrong_key_is_told(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.AuthenticationError) as caught:
        await client.with_options(api_key="wrong").messages.create(**SAY_OK)
    assert caught.value.type == "authentication_error"


async def test_a_tool_is_called(client: anthropic.AsyncAnthropic) -> None:
    """A tool_choice leaves the real model no choice, and the fake neither."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    asked: Any = {
        "tools": [{"name": "weather", "description": "the weather of a city", "input_schema": schema}],
        "tool_choice": {"type": "tool", "name": "weather"},
        "messages": [{"role": "user", "content": "The weather in Rome, please."}],
        "max_tokens": 200,
    }
    message = await client.messages.create(**{**SAY_OK, **asked})
    (call,) = (block for block in message.content if block.type == "tool_use")
    assert message.stop_reason == "tool_use"
    assert (call.name, list(call.input)) == ("weather", ["city"])
    async with client.messages.stream(**{**SAY_OK, **asked}) as stream:
        streamed = await stream.get_final_message()
    (call,) = (block for block in streamed.content if block.type == "tool_use")
    assert json.dumps(call.input).startswith('{"city": ')
