"""Run an agent's handler on one event without Kafka, as the worker would run it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from farandole import ids
from farandole.agent import Agent, Wiring
from farandole.envelope import Emitter, Envelope, begin, follow
from farandole.errors import ConfigurationError
from farandole.event import Event
from farandole.handling import Handling
from farandole.job_now import Given
from farandole.outcome import DeadLettered, Emitted, Outcome
from farandole.reading import Job
from farandole.testing.steps import Remembered


async def deliver(
    agent: Agent,
    payload: Event,
    *,
    answers: Mapping[type[Any], Any] | None = None,
    resource: Any = None,
    job: Job | None = None,
    envelope: Envelope | None = None,
    flow: str = "jobs",
) -> Outcome:
    """How `agent` ends with `payload`: `Emitted`, `Failed` or `DeadLettered`; attempts run without their backoff. What it emits
    is written to bytes as a worker would, and dropped: an event that does not fit its schema is `DeadLettered`.

    Args:
        answers: by output class, what `ctx.ask` is answered; without one the agent's own rules answer.
        resource: stands for what the agent's `resource=` would open.
        job: what `ctx.job()` gives, such as `Job(uuid4(), stage="classified", data={…})`.
    """
    wiring = agent.wiring(flow)
    if type(payload) not in wiring.handler.reads:
        raise ConfigurationError(f"agent {agent.name} does not read {type(payload).__name__}")
    made = next(contract for contract in wiring.reads.values() if contract.event is type(payload))
    envelope = envelope or Envelope(begin(ids.new_trace_id(), Emitter("test"), made.writer.identity))
    handling = Handling(wiring, resource, answers, sleep=_at_once, steps=Remembered(), jobs=Given(job))
    return _written(wiring, envelope, await handling.run(payload, envelope))


def _written(wiring: Wiring, cause: Envelope, outcome: Outcome) -> Outcome:
    """The outcome once its events are written, as a worker writes them: what does not fit its schema is wrong output."""
    if not isinstance(outcome, Emitted):
        return outcome
    try:
        for position, event in enumerate(outcome.events):
            made = wiring.emits[type(event)]
            made.encode(follow([cause.raw], wiring.agent.emitter, made.writer.identity, position), event)
    except Exception as error:  # noqa: BLE001  a user's event may fail to encode in any way
        return DeadLettered("wrong_output", f"{type(error).__name__}: {error}", outcome.attempts)
    return outcome


async def _at_once(_seconds: float) -> None:
    await asyncio.sleep(0)
