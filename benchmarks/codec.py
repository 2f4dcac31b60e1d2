"""What an event costs between Python and bytes: the project's encoding and decoding beside fastavro alone, in one run.

    python benchmarks/codec.py [events=1000] [runs=51]

fastavro is given plain dicts and the very schema, its envelope without logical types: ids and times stay strings and longs
with us, too. Ours starts from a payload and ends at one. Prints a JSON line a figure: µs of processor time an event (the
median of the runs, which take turns) and the ratio.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import StrEnum
from io import BytesIO
from statistics import median
from typing import Any

import fastavro
from pydantic import AwareDatetime, BaseModel, ConfigDict

from farandole import Event, ids
from farandole.contracts.codec import contract, decode
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS
from farandole.contracts.wire.raw import plain
from farandole.envelope import Emitter, begin, check

WHEN = datetime(2026, 11, 30, 9, 30, tzinfo=UTC)


class Urgency(StrEnum):
    """How soon somebody should look."""

    LOW = "low"
    HIGH = "high"


class Classified(Event, topic="jobs.classified", stage="classified"):
    """350 bytes: strings, an enum, a time."""

    message_id: str
    category: str
    urgency: Urgency
    language: str
    why: str
    sender: str | None
    received_at: AwareDatetime


class Order(BaseModel):
    """A record inside an event."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    number: str
    status: str
    placed_on: date
    amount_cents: int


class Enriched(Event, topic="jobs.enriched", stage="enriched"):
    """4 kB: a text, and ten records with four fields each."""

    message_id: str
    category: str
    urgency: Urgency
    text: str
    labels: dict[str, str]
    orders: list[Order]
    received_at: AwareDatetime


SMALL = Classified(
    message_id="<20261130093000.17@mail.example.org>", category="order_status", urgency=Urgency.HIGH, language="en",
    why="asks where order A-10423 is, and names the day it should have come: " + "x" * 91, sender="ann@example.org",
    received_at=WHEN,
)  # fmt: skip
LARGE = Enriched(
    message_id=SMALL.message_id, category=SMALL.category, urgency=SMALL.urgency, text="Where is it? " * 275,
    labels={"team": "care", "shop": "north"}, received_at=WHEN,
    orders=[
        Order(number=f"A-{10_000 + number}", status="delivered", placed_on=date(2026, 1 + number, 1), amount_cents=4_990)
        for number in range(10)
    ],
)  # fmt: skip

Work = Callable[[], object]


def without_envelope_types(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with an envelope of strings and numbers; logical types of the payload as they are."""
    return schema | {"fields": [plain(one) if one["name"] in ENVELOPE_FIELDS else one for one in schema["fields"]]}


def works(event: Event) -> tuple[int, dict[str, tuple[Work, Work]]]:
    """The event's bytes on the wire, and by the figure's name what is done to it: ours, then fastavro's."""
    made = contract(type(event), "jobs")
    parsed, reader = fastavro.parse_schema(without_envelope_types(made.writer.schema)), made.writer
    raw = begin(ids.new_trace_id(), Emitter("bench", "1.0"), made.writer.name)
    value = made.encode(raw, event)
    bare = value[len(made.header) :]
    fields = fastavro.schemaless_reader(BytesIO(bare), parsed, None)

    def write() -> bytes:
        out = BytesIO()
        fastavro.schemaless_writer(out, parsed, fields)
        return out.getvalue()

    def read() -> object:
        return fastavro.schemaless_reader(BytesIO(bare), parsed, None)

    def checked() -> dict[str, Any]:
        found = decode(value, reader)
        check(found)
        return found

    if write() != bare or made.read(checked()) != event:
        raise SystemExit("ours and fastavro's bytes differ")
    return len(value), {
        "encode a payload": (lambda: made.encode(raw, event), write),
        "decode to checked fields": (checked, read),
        "decode to a payload": (lambda: made.read(checked()), read),
    }


def microseconds(work: Work, events: int) -> float:
    """Of processor time, for one event."""
    began = time.process_time()
    for _ in range(events):
        work()
    return (time.process_time() - began) / events * 1e6


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 51
    for event in (SMALL, LARGE):
        size, figures = works(event)
        for name, (ours, bare) in figures.items():
            taken = [(microseconds(ours, events), microseconds(bare, events)) for _ in range(runs)]
            found, base = median(one for one, _ in taken), median(one for _, one in taken)
            figure: dict[str, Any] = {"bytes": size, "what": name, "us": round(found, 2), "fastavro": round(base, 2)}
            print(json.dumps(figure | {"ratio": round(median(one / other for one, other in taken), 2)}), flush=True)


if __name__ == "__main__":
    main()
