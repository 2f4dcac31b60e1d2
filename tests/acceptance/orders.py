"""A flow of two agents in two versions, as projects for the tests of deploys."""

from __future__ import annotations

from pathlib import Path

#: Version 2 has a new optional field (channel, unit), lacks one (note), knows one urgency more, and two of its events have
#: other names.
EVENTS = {
    1: '''"""Orders, as they were at first."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from farandole import Event


class Urgency(StrEnum):
    calm = "calm"
    other = "other"

    __unknown__ = "other"


class Weight(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    grams: int


class Placed(Event, topic="jobs.placed", stage="placed", ingest=True, partitions=4):
    plan: str
    urgency: Urgency
    note: str = "no note"


class Checked(Event, topic="jobs.checked", stage="checked", partitions=4):
    trail: str
    urgency: Urgency
    weight: Weight
    note: str = "no note"


class Shipped(Event, topic="jobs.shipped", stage="shipped", terminal="done"):
    trail: str
''',
    2: '''"""Orders, as they are now."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from farandole import Event


class Urgency(StrEnum):
    urgent = "urgent"
    calm = "calm"
    other = "other"

    __unknown__ = "other"


class Weight(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    grams: int
    unit: str = "g"


class Ordered(Event, topic="jobs.placed", stage="placed", ingest=True, partitions=4, aliases=("Placed",)):
    plan: str
    urgency: Urgency
    channel: str | None = None


class Reviewed(Event, topic="jobs.checked", stage="checked", partitions=4, aliases=("Checked",)):
    trail: str
    urgency: Urgency
    weight: Weight
    channel: str | None = None


class Shipped(Event, topic="jobs.shipped", stage="shipped", terminal="done"):
    trail: str
''',
}

CHECK = '''"""jobs.placed -> jobs.checked."""

import os

from farandole import Agent, Context, Reject, Retry
from schemas.orders import Checked, Placed, Weight

agent = Agent("check", version="VERSION")


@agent.handle
async def check(order: Placed, ctx: Context) -> Checked:
    def weigh() -> Weight:
        with open(os.environ["TEST_LEDGER"], "a") as ledger:
            print(ctx.envelope.trace_id, file=ledger)
        return Weight(grams=7)

    weight = await ctx.once("weigh", weigh)
    if order.plan == "reject VERSION":
        raise Reject("this version cannot")
    if order.plan == "later" and ctx.attempt == 1:
        raise Retry("put off", after="1h")
    trail = f"check VERSION: {order.urgency}, {order.note};"
    return Checked(trail=trail, urgency=order.urgency, weight=weight, note=order.note)
'''

SHIP = '''"""jobs.checked -> jobs.shipped."""

from farandole import Agent
from schemas.orders import Checked, Shipped

agent = Agent("ship", version="VERSION")


@agent.handle
async def ship(order: Checked) -> Shipped:
    return Shipped(trail=f"{order.trail} ship VERSION: {order.urgency}, {order.note}")
'''


def project(folder: Path, version: int) -> Path:
    """Write the flow in a version; its root."""
    root = folder / f"version{version}"
    files = {"pyproject.toml": "[tool.farandole]\n", "schemas/orders.py": EVENTS[version]}
    names = {"Placed": "Ordered", "Checked": "Reviewed", "note": "channel"} if version == 2 else {}
    for name, text in (("check", CHECK), ("ship", SHIP)):
        for old, new in ({"VERSION": str(version)} | names).items():
            text = text.replace(old, new)
        files[f"agents/{name}.py"] = text
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
