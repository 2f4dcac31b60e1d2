"""Small projects on disk for tests of what is read from them."""

from __future__ import annotations

from pathlib import Path

from farandole.project import Project, require_project

EVENTS = '''
"""Events."""
from farandole import Event

class Placed(Event, topic=".placed", stage="placed", ingest=True):
    """An order came in."""
    number: str
    amount: int = 0

class Priced(Event, topic=".priced", stage="priced"):
    number: str
    total: int

class Billed(Event, topic=".billed", stage="billed", terminal="done"):
    number: str
'''


def project(root: Path, *, events: str = EVENTS, agents: dict[str, tuple[str, str]] | None = None) -> Project:
    """A project of flow `orders`; each agent is its name, what it reads and what it emits."""
    (root / "pyproject.toml").write_text('[tool.farandole]\nflow = "orders"\n')
    (root / "schemas").mkdir(exist_ok=True)
    (root / "agents").mkdir(exist_ok=True)
    (root / "schemas" / "orders.py").write_text(events)
    for name, (reads, emits) in (agents or {}).items():
        (root / "agents" / f"{name}.py").write_text(
            f"from farandole import Agent\nfrom schemas.orders import *\nagent = Agent({name!r})\n"
            f"@agent.handle\ndef handle(event: {reads}) -> {emits}:\n    return None\n"
        )
    return require_project(root)
