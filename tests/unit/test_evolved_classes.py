"""Classes of two versions read each other's records: what the check lets pass is so in the runtime too."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest
from pydantic import create_model

from farandole import Event, ids
from farandole.contracts.codec import contract, decode
from farandole.contracts.evolution.breaks import problems
from farandole.envelope import Emitter, begin


def event(name: str, fields: dict[str, Any], **arguments: Any) -> type[Event]:
    """An event class; each field is its annotation and its default (...: it has none)."""
    told = {"topic": ".placed", "stage": "placed"} | arguments
    return create_model(name, __base__=Event, __cls_kwargs__=told, **fields)


def sent(event: Event, reader: type[Event]) -> dict[str, Any]:
    """What a handler with `reader` is given of an event that was written with the class of `event`."""
    written, wanted = contract(type(event), "orders"), contract(reader, "orders")
    value = written.encode(begin(ids.new_trace_id(), Emitter("client"), "orders.Placed"), event)
    return wanted.read(decode(value, written.writer, wanted.writer)).model_dump()


class Mood(StrEnum):
    CALM = "calm"
    CROSS = "cross"

    __unknown__ = "calm"


class LaterMood(StrEnum):
    CALM = "calm"
    CROSS = "cross"
    SAD = "sad"

    __unknown__ = "calm"


LaterMood.__name__ = "Mood"

NUMBER = {"number": (str, ...)}
BOTH = NUMBER | {"note": (str | None, None)}
PLACED, NOTED = event("Placed", NUMBER), event("Placed", BOTH)
CALM, SAD = event("Placed", {"mood": (Mood, ...)}), event("Placed", {"mood": (LaterMood, ...)})
ORDERED = event("Ordered", BOTH, aliases=("Placed",))

#: Writer, reader, what is written, what is read.
CASES: dict[str, tuple[type[Event], type[Event], dict[str, Any], dict[str, Any]]] = {
    "new reads old: a new optional field": (PLACED, NOTED, {"number": "7"}, {"number": "7", "note": None}),
    "old reads new: a new optional field": (NOTED, PLACED, {"number": "7", "note": "x"}, {"number": "7"}),
    "new reads old: a new symbol": (CALM, SAD, {"mood": "cross"}, {"mood": "cross"}),
    "old reads new: a new symbol": (SAD, CALM, {"mood": "sad"}, {"mood": "calm"}),
    "new reads old: a renamed class": (PLACED, ORDERED, {"number": "7"}, {"number": "7", "note": None}),
    "old reads new: a renamed class": (ORDERED, PLACED, {"number": "7", "note": "x"}, {"number": "7"}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_breaks_nobody_is_read_both_ways(case: str) -> None:
    writer, reader, written, read = CASES[case]
    old, new = (contract(each, "orders").writer.schema for each in (writer, reader))
    assert [one for one in problems(old, new) if not one.warning] == []
    assert sent(writer.model_validate(written), reader) == read
