"""What it takes to ask models, opened for a worker where there is a key for them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from farandole.agent import Agent
from farandole.asker import Asker
from farandole.handler import folder_of
from farandole.models.pricing import Prices
from farandole.pace.shared import SharedPace
from farandole.settings import Settings
from farandole.steps.model_calls import Connected

log = logging.getLogger("farandole.models")

_NONE = "none: no ANTHROPIC_API_KEY, its own rules decide"


@asynccontextmanager
async def connected(settings: Settings, agent: Agent, pace: SharedPace) -> AsyncIterator[Asker | None]:
    """Asks models for `agent`; None without ANTHROPIC_API_KEY, where the agents' own rules answer. `pace` gives calls their
    turns, and is open meanwhile."""
    if agent.handler is None or not agent.handler.takes_context:
        yield None
        return
    key = settings.anthropic_api_key
    if "ask" in agent.handler.function.__code__.co_names:
        named = " ".join(f"{name}={model}" for name, model in settings.models.items())
        log.info("models agent=%s %s", agent.name, f"at {settings.anthropic_base_url} {named}" if key else _NONE)
    if key is None:
        yield None
        return
    from farandole.models.claude import Claude  # the client's import takes a second, which offline agents save

    claude = Claude(key.get_secret_value(), settings.anthropic_base_url)
    try:
        async with pace:
            parts = Connected(claude, pace, Prices(settings.prices), settings.budgets)
            yield Asker(parts, folder_of(agent.handler.function) / "prompts", settings.models, agent.timeout)
    finally:
        await claude.close()
