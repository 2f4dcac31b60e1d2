"""For any schema of ours: the class written from it derives that schema again."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from farandole.contracts.deriving import derive
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS
from farandole.contracts.teams.python_source import source

#: Names that mean something to Python, pydantic, the source itself or its imports; and some that do not.
FIELDS = [
    "str",
    "list",
    "date",
    "Field",
    "Event",
    "class",
    "match",
    "json",
    "model_dump",
    "_x",
    "R1",
    "a",
    "b_c",
    "personal",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=150)
WORDS = TEXT.map(lambda text: " ".join(text.split()))

#: Types with a strategy for their defaults, as these stand in a schema.
PLAIN: list[tuple[Any, st.SearchStrategy[Any] | None]] = [
    ("string", TEXT),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("double", st.floats(allow_nan=False, allow_infinity=False)),
    ("boolean", st.booleans()),
    ("bytes", st.binary(max_size=9).map(lambda raw: raw.decode("latin-1"))),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str)),
    ({"type": "int", "logicalType": "date"}, st.integers(-700_000, 2_900_000)),
    ({"type": "long", "logicalType": "timestamp-micros"}, st.integers(-(10**16), 10**17)),
    ({"type": "long", "logicalType": "time-micros"}, st.integers(0, 86_399_999_999)),
    ({"type": "long", "unit": "microseconds"}, st.integers(-(10**17), 10**17)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, None),
]


@st.composite
def fields(draw: st.DrawFn, depth: int, names: list[str]) -> list[dict[str, Any]]:
    """Fields of one record; `names` are those of the records and enums so far."""
    chosen = draw(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4, unique=True))
    return [draw(field(name, depth, names)) for name in chosen]


@st.composite
def field(draw: st.DrawFn, name: str, depth: int, names: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name}
    kind, default = draw(typed(depth, names))
    nullable = draw(st.booleans())
    if default is not None and draw(st.booleans()):
        made |= {"type": [kind, "null"] if nullable else kind, "default": draw(default)}
    else:
        made["type"] = ["null", kind] if nullable else kind
        made |= {"default": None} if nullable and draw(st.booleans()) else {}
    if doc := draw(WORDS):
        made["doc"] = doc
    return made | ({"personal": True} if draw(st.booleans()) else {})


@st.composite
def typed(draw: st.DrawFn, depth: int, names: list[str]) -> tuple[Any, st.SearchStrategy[Any] | None]:
    what = draw(st.sampled_from(["plain", "enum", "record", "array", "map"] if depth else ["plain", "enum"]))
    if what == "plain":
        plain: tuple[Any, st.SearchStrategy[Any] | None] = draw(st.sampled_from(PLAIN))
        return plain
    if what == "enum":
        symbols = draw(
            st.lists(st.sampled_from(["a", "A", "_a", "None", "mro", "title", "x1"]), min_size=1, unique=True)
        )
        names.append(f"E{len(names)}")
        unknown = {"default": draw(st.sampled_from(symbols))} if draw(st.booleans()) else {}
        return {"type": "enum", "name": names[-1], "symbols": symbols} | unknown, st.sampled_from(symbols)
    if what == "record":
        names.append(f"R{len(names)}")
        name = names[-1]
        return {"type": "record", "name": name, "fields": draw(fields(depth - 1, names))}, None
    inner, _ = draw(typed(depth - 1, names))
    if what == "array":
        return {"type": "array", "items": inner}, st.just([])
    return {"type": "map", "values": inner}, st.just({})


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "record", "name": "Anything", "namespace": "jobs"}
    if doc := draw(WORDS):
        made["doc"] = doc
    made |= {"topic": "jobs.anything"} | ({"stage": draw(TEXT)} if draw(st.booleans()) else {})
    return made | {"fields": draw(fields(2, []))}


@given(schemas())
@settings(max_examples=60)
def test_the_class_written_from_any_schema_of_ours_derives_it_again(schema: dict[str, Any]) -> None:
    module = types.ModuleType("written_for_any_schema")
    sys.modules[module.__name__] = module
    exec(compile(source([schema]), module.__name__, "exec"), vars(module))
    found = derive(module.Anything, "jobs")
    found["fields"] = [one for one in found["fields"] if one["name"] not in ENVELOPE_FIELDS]
    assert json.loads(json.dumps(found)) == json.loads(json.dumps(schema))
