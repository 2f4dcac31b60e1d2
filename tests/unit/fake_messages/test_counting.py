"""What FakeMessages counts: usage, the cache, calls, its own limits."""

from __future__ import annotations

import asyncio

import anthropic
import pytest

from farandole.models.configured import Limit
from farandole.testing import FakeMessages
from farandole.testing.messages import (
    Answer,
    Slow,
    server_error,
)
from tests.unit.fake_messages.asking import ASKED, GOOD, HAIKU, ask, to


async def test_slow_calls_are_in_flight_together(fake: FakeMessages) -> None:
    fake.reply(Slow(0.3, GOOD))
    async with to(fake) as client:
        await asyncio.gather(*(client.messages.create(**ASKED) for _ in range(50)))
    assert fake.most_in_flight > 40
    assert fake.most_in_window(60) == 50


async def test_usage_is_worked_out_from_the_request_and_the_reply(fake: FakeMessages) -> None:
    first, again, longer = await ask(fake), await ask(fake), await ask(fake, system="x" * 400)
    assert first.usage == again.usage
    assert 100 <= longer.usage.input_tokens - first.usage.input_tokens <= 105


async def test_a_marked_prefix_is_written_once_and_read_from_then_on(fake: FakeMessages) -> None:
    system = [{"type": "text", "text": "rules " * 100, "cache_control": {"type": "ephemeral"}}]
    other = [{"role": "user", "content": "another question"}]
    plain = await ask(fake, system="rules " * 100)
    fake.script([server_error()])
    with pytest.raises(anthropic.InternalServerError):
        await ask(fake, system=system)  # nothing was computed, nothing is kept
    wrote, read = await ask(fake, system=system), await ask(fake, system=system, messages=other)
    assert wrote.usage.cache_creation_input_tokens
    assert (wrote.usage.cache_read_input_tokens, read.usage.cache_creation_input_tokens) == (0, 0)
    assert read.usage.cache_read_input_tokens == wrote.usage.cache_creation_input_tokens
    parts = wrote.usage.input_tokens + wrote.usage.cache_creation_input_tokens
    assert abs(parts - plain.usage.input_tokens) < 25
    assert (await ask(fake, system=system, model="claude-sonnet-5-5")).usage.cache_read_input_tokens == 0


async def test_calls_are_kept_with_all_that_is_known_of_them(fake: FakeMessages) -> None:
    await ask(fake, extra_headers={"Idempotency-Key": "fd-1"})
    await ask(fake, extra_headers={"Idempotency-Key": "fd-1"})
    await ask(fake, extra_headers={"Idempotency-Key": "fd-2"}, model="claude-sonnet-5-5")
    first, _, last = fake.calls
    assert (first.key, first.api_key, first.model, first.status, first.whole) == ("fd-1", "test", HAIKU, 200, True)
    assert first.body["messages"] == ASKED["messages"]
    assert first.ended is not None
    assert first.came <= first.ended <= last.came
    assert {key: found["calls"] for key, found in fake.totals("key").items()} == {"fd-1": 2, "fd-2": 1}
    assert fake.totals()[HAIKU]["output_tokens"] == 2 * first.usage["output_tokens"]
    price = {HAIKU: (1.0, 10.0, 0.0, 0.0), "claude-sonnet-5-5": (0.0, 100.0, 0.0, 0.0)}
    assert fake.cost(price) == sum(
        call.usage["input_tokens"] * int(price[call.model][0]) + call.usage["output_tokens"] * int(price[call.model][1])
        for call in fake.calls
    )


async def test_too_many_requests_are_refused_until_the_bucket_has_one() -> None:
    with FakeMessages(enforce=Limit(requests=3)) as fake:
        for _ in range(3):
            await ask(fake)
        with pytest.raises(anthropic.RateLimitError) as caught:
            await ask(fake)
        headers = caught.value.response.headers
        assert int(headers["retry-after"]) in (19, 20)
        assert headers["anthropic-ratelimit-requests-limit"] == "3"
        assert headers["anthropic-ratelimit-requests-remaining"] == "0"
        await ask(fake, model="claude-sonnet-5-5")  # which has a bucket of its own
        assert [call.limited for call in fake.calls] == [False, False, False, True, False]
        assert len(fake.violations) == 1
        assert fake.most_in_window(60) == 5


async def test_tokens_and_connections_are_limited_too() -> None:
    with FakeMessages(enforce=Limit(input_tokens=100)) as fake:
        await ask(fake, system="x" * 250)
        with pytest.raises(anthropic.RateLimitError, match="100 input tokens per minute"):
            await ask(fake, system="x" * 250)
    with FakeMessages(enforce=Limit(output_tokens=5)) as fake:
        fake.reply(Answer("x" * 100))
        await ask(fake)
        with pytest.raises(anthropic.RateLimitError, match="5 output tokens per minute"):
            await ask(fake)
        assert fake.most_in_window(1, "output_tokens") == fake.calls[0].usage["output_tokens"]
    with FakeMessages(enforce=Limit(concurrency=1)) as fake:
        fake.rule(lambda body: Slow(0.2, GOOD))
        found = await asyncio.gather(*(ask(fake) for _ in range(3)), return_exceptions=True)
        assert sum(isinstance(one, anthropic.RateLimitError) for one in found) == 2
        await ask(fake)
