"""The verdict on any two schemas is what happens: records of the one, decoded by fastavro with the other."""

from __future__ import annotations

import copy
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from farandole.contracts import codec, framing
from farandole.contracts.envelope_fields import Schema
from farandole.contracts.evolution.breaks import problems
from farandole.contracts.evolution.examples import examples
from farandole.contracts.evolution.resolution import Named
from farandole.errors import Poison
from tests.unit.avro_edges import edges, lost

PRIMITIVES = ["boolean", "int", "long", "float", "double", "bytes", "string"]
NAMES = ["Mood", "Hash", "Item", "Other"]
DEFAULTS: dict[str, Any] = {
    "null": None, "boolean": True, "int": 1, "long": 1, "float": 1.5, "double": 1.5, "bytes": "a", "string": "a",
}  # fmt: skip

LEAVES = st.sampled_from([*PRIMITIVES, *NAMES])
UNIONS = st.lists(LEAVES | st.just("null"), min_size=1, max_size=4, unique=True)
KINDS = st.one_of(
    LEAVES, LEAVES, UNIONS, st.builds(lambda kind: {"type": "array", "items": kind}, LEAVES | UNIONS),
    st.builds(lambda kind: {"type": "map", "values": kind}, LEAVES),
)  # fmt: skip


@st.composite
def fields(draw: st.DrawFn, names: str, kinds: st.SearchStrategy[Any] = KINDS) -> list[Schema]:
    made = []
    for name in draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=3)):
        field: Schema = {"name": name, "type": draw(kinds)}
        first = field["type"][0] if isinstance(field["type"], list) else field["type"]
        if isinstance(first, str) and first in DEFAULTS and draw(st.booleans()):
            field["default"] = DEFAULTS[first]
        made.append(field)
    return made


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Schema]:
    """The named types that a schema may use; Other may hold itself."""
    symbols = draw(st.lists(st.sampled_from("xyz"), unique=True, min_size=1))
    mood: Schema = {"type": "enum", "name": "Mood", "symbols": symbols}
    if draw(st.booleans()):
        mood["default"] = symbols[0]
    simple = st.sampled_from(PRIMITIVES) | st.just("Mood")
    own = st.sampled_from([["null", "Other"], ["null", "Mood", "Other"], {"type": "array", "items": "Other"}, "long"])
    return {
        "Mood": mood,
        "Hash": {"type": "fixed", "name": "Hash", "size": draw(st.sampled_from([2, 2, 4]))},
        "Item": {"type": "record", "name": "Item", "fields": draw(fields("pq", simple))},
        "Other": {"type": "record", "name": "Other", "fields": draw(fields("pq", own))},
    }


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """Two schemas, the second often the first with a little changed."""
    types = draw(definitions())
    old = draw(fields("abc"))
    changed = draw(st.sets(st.sampled_from(NAMES)))
    later = types | {name: made for name, made in draw(definitions()).items() if name in changed}
    new = [draw(st.just(field) | fields(field["name"]).map(lambda made: made[0])) for field in old]
    new += [field for field in draw(st.just([]) | fields("cde")) if field["name"] not in {one["name"] for one in new}]
    if draw(st.booleans()):
        new = new[1:]
    return schema(old, types), schema(new, later)


def schema(own: list[Schema], types: dict[str, Schema]) -> Schema:
    """A record whose named types are defined where they are first met."""
    left = copy.deepcopy(types)

    def place(kind: Any) -> Any:
        if isinstance(kind, str):
            return place(left.pop(kind)) if kind in left else kind
        if isinstance(kind, list):
            return [place(branch) for branch in kind]
        made = dict(kind)
        for inner in ("items", "values"):
            if inner in made:
                made[inner] = place(made[inner])
        if "fields" in made:
            made["fields"] = [{**field, "type": place(field["type"])} for field in made["fields"]]
        return made

    return place({"type": "record", "name": "Event", "namespace": "n", "fields": copy.deepcopy(own)})  # type: ignore[no-any-return]


def goes_wrong(written: Schema, wanted: Schema) -> bool:
    """Whether any record of `written` fails, or means something else, with a reader of `wanted`."""
    parsed, reader = fastavro.parse_schema(copy.deepcopy(written)), fastavro.parse_schema(copy.deepcopy(wanted))
    ours, theirs = Named(written), Named(wanted)
    for value, raw in edges(ours.root, ours):
        try:
            read = fastavro.schemaless_reader(BytesIO(raw), parsed, reader)
        except Exception:  # noqa: BLE001  however it fails, the record cannot be read
            return True
        if lost(value, read, theirs.root, theirs):
            return True
    return False


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs())
def test_a_break_is_told_where_and_only_where_a_record_cannot_be_read(pair: tuple[Schema, Schema]) -> None:
    old, new = pair
    told = {reader for one in problems(old, new) for reader in one.readers}
    happens = {name for name, ends in (("new", (old, new)), ("old", (new, old))) if goes_wrong(*ends)}
    event(f"breaks {sorted(happens)}")
    assert told == happens


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs())
def test_the_runtime_reads_what_fastavro_does_and_refuses_what_cannot_be_read(pair: tuple[Schema, Schema]) -> None:
    for written, wanted in (pair, pair[::-1]):
        writer, reader = codec.writer(written), codec.writer(wanted)
        names = Named(written)
        for _, raw in edges(names.root, names):
            try:
                read = fastavro.schemaless_reader(BytesIO(raw), writer.parsed, reader.parsed)
            except Exception:  # noqa: BLE001  however it fails, the record cannot be read
                with pytest.raises(Poison):
                    codec.decode(framing.single_object(writer.fingerprint) + raw, writer, reader)
            else:
                found = codec.decode(framing.single_object(writer.fingerprint) + raw, writer, reader)
                assert untold(found) == read


def untold(value: Any) -> Any:
    """Without the names of records that were one of several."""
    if isinstance(value, tuple):
        return untold(value[1])
    if isinstance(value, dict):
        return {name: untold(inner) for name, inner in value.items()}
    return [untold(inner) for inner in value] if isinstance(value, list) else value


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs())
def test_an_example_reads_as_what_it_was_made_of(pair: tuple[Schema, Schema]) -> None:
    made = examples(pair[0])
    assert made == examples(copy.deepcopy(pair[0])), "the same every time"
    parsed = fastavro.parse_schema(copy.deepcopy(pair[0]))
    for value, raw in made:
        data = BytesIO(raw)
        assert fastavro.schemaless_reader(data, parsed, None) == value
        assert data.tell() == len(raw)
