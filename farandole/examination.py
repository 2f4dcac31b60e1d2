"""What the checks of `farandole doctor` find, and what they learn for those after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from farandole import postgres
from farandole.agent import Agent
from farandole.event import Event
from farandole.project import Project
from farandole.settings import Settings


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: `state` is ok, warning, problem or skipped (something it needs is itself a problem)."""

    check: str
    state: str
    found: str
    advice: str = ""


@dataclass(slots=True)
class Examination:
    """What the checks have learned for those after them; None where it could not be had."""

    project: Project | None = None
    settings: Settings | None = None
    events: list[type[Event]] | None = None
    agents: dict[Any, Agent] | None = None
    broker: bool = False
    database: postgres.Connection[Any] | None = None
    migrated: bool = False
    folded: bool = False


class Skip(Exception):
    """A check cannot run; names what it needs."""


def need(value: Any, what: str) -> Any:
    if not value:
        raise Skip(what)
    return value
