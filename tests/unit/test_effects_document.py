"""The agents in docs/effects.md load, and what they declare is true to the API."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from farandole import Agent, load_agent

TEXT = (Path(__file__).parents[2] / "docs" / "effects.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)

SCHEMAS = """
from farandole import Event

class Priced(Event, topic="shop.priced"):
    order: str
    card: str
    cents: int

class Charged(Event, topic="shop.charged"):
    order: str
    receipt: str

class Approved(Event, topic="shop.approved"):
    order: str
    address: str
    text: str

class Notified(Event, topic="shop.notified"):
    order: str
    message_id: str
"""

RESOURCE = """
from contextlib import asynccontextmanager

class {kind}: ...

@asynccontextmanager
async def {opens}(settings):
    yield {kind}()
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("schemas", "shop", "agents"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.farandole]\nflow = "shop"\n')
    (tmp_path / "schemas/shop.py").write_text(SCHEMAS)
    (tmp_path / "shop/payments.py").write_text(RESOURCE.format(kind="Payments", opens="open_payments"))
    (tmp_path / "shop/mails.py").write_text(RESOURCE.format(kind="Mailer", opens="open_mailer"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_agent_of_the_document_loads(number: int, shop: Path) -> None:
    file = shop / "agents" / f"agent_{number}.py"
    file.write_text(BLOCKS[number])
    agent = load_agent(file)
    assert isinstance(agent, Agent)
    assert agent.wiring("shop").handler.takes_context


def test_there_are_agents_in_the_document() -> None:
    assert len(BLOCKS) == 2
