"""How the tests of FakeMessages ask it: through the official client, without its retries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest

from farandole.testing import FakeMessages
from farandole.testing.messages import (
    Answer,
    Behaviour,
)

HAIKU = "claude-haiku-5-5"
ASKED: Any = {"model": HAIKU, "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
GOOD = Answer("good")


@asynccontextmanager
async def to(fake: FakeMessages) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(api_key="test", base_url=fake.url, max_retries=0) as client:
        yield client


async def ask(fake: FakeMessages, **more: Any) -> anthropic.types.Message:
    async with to(fake) as client:
        found: anthropic.types.Message = await client.messages.create(**{**ASKED, **more})
        return found


async def hear(fake: FakeMessages, **more: Any) -> anthropic.types.Message:
    """The same, streamed."""
    async with to(fake) as client, client.messages.stream(**{**ASKED, **more}) as stream:
        return await stream.get_final_message()


async def failure(fake: FakeMessages, behaviour: Behaviour) -> anthropic.APIStatusError:
    fake.script([behaviour])
    with pytest.raises(anthropic.APIStatusError) as caught:
        await ask(fake)
    return caught.value


def text(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")
