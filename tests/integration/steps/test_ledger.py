"""The ledger in a worker: what is granted to nobody is given back, and attempts that end leave nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from farandole import migrate
from farandole.attempt import AttemptTime
from farandole.errors import ConfigurationError
from farandole.outage import Outage
from farandole.settings import Settings
from farandole.steps.claims import Claim, Granted, Step
from farandole.steps.effects import Effects
from farandole.steps.ledger import Ledger


@pytest.fixture
async def ledger(farandole_settings: Settings) -> AsyncIterator[Ledger]:
    await asyncio.to_thread(migrate.migrate, farandole_settings)
    async with Ledger(farandole_settings, "act", lambda: Outage("test", 30)) as ledger:
        yield ledger


def effects(ledger: Ledger, seconds: float = 30.0, event: str | None = None) -> Effects:
    event = event or str(uuid4())
    fields = {"event_id": event, "trace_id": event, "tenant": None, "run": 0}
    return Effects(ledger, "act", fields, AttemptTime(seconds))


async def test_a_claim_whose_attempt_is_cancelled_meanwhile_is_given_back(ledger: Ledger) -> None:
    """With "hold" a person would be asked about a call that was never made."""
    event = str(uuid4())
    claim = Claim(Step(event, "act", "mail", event), ledger.owner(), 0, hold=True)
    asking = asyncio.create_task(ledger.begin(claim))
    await asyncio.sleep(0)  # it has asked
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    async def send(key: str) -> str:
        return key

    assert await effects(ledger, event=event).once("mail", send, None, "hold") == claim.step.key(0)


async def test_steps_at_the_same_time_are_each_run_once(ledger: Ledger) -> None:
    ran: list[int] = []
    here = effects(ledger)

    async def run(number: int) -> int:
        ran.append(number)
        return number

    async def once(number: int) -> Any:
        return await here.once(f"n{number}", lambda: run(number), int, "repeat")

    assert await asyncio.gather(*(once(number) for number in range(300))) == list(range(300))
    assert sorted(ran) == list(range(300))


async def test_a_result_type_that_cannot_be_kept_is_refused_before_anything_is_called(ledger: Ledger) -> None:
    class Odd:
        """Nothing that pydantic knows."""

    def never() -> Any:
        raise AssertionError("it was called")

    with pytest.raises(ConfigurationError, match="cannot be kept"):
        await effects(ledger).once("x", never, Odd, "repeat")


async def test_what_waits_for_another_owner_ends_with_its_attempt_at_last(ledger: Ledger) -> None:
    """An owner that hangs for ever must not hang the others."""
    event = str(uuid4())
    claim = Claim(Step(event, "act", "mail", event), ledger.owner(), 0)
    assert isinstance(await ledger.begin(claim), Granted)
    waiting = effects(ledger, 0.2, event)
    with ledger.leased(claim), pytest.raises(TimeoutError):
        async with waiting.time:
            await waiting.once("mail", lambda: "sent", str, "repeat")


async def test_what_outlives_its_attempt_has_no_clock_to_stop(ledger: Ledger) -> None:
    time = AttemptTime(30)
    left = time.stopped()
    async with time:
        left.__enter__()
    left.__exit__(None, None, None)
    with time.stopped():
        pass
