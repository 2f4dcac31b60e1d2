"""A schema that refers to others becomes one that any Avro library parses by itself."""

from __future__ import annotations

import copy
from typing import Any

import fastavro
import pytest

from farandole.contracts.registry.references import inlined


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


STREET = record("com.geo.Street", called="string", kind={"type": "enum", "name": "Kind", "symbols": ["ROAD", "LANE"]})
ADDRESS = record("com.acme.Address", street="com.geo.Street", zip="string")


def defined(schema: Any) -> list[str]:
    """The names of the types that are written out in a schema, in order."""
    if isinstance(schema, list):
        return [name for branch in schema for name in defined(branch)]
    if not isinstance(schema, dict):
        return []
    own = [schema["name"]] if schema.get("type") in ("record", "enum", "fixed") else []
    inner = [field["type"] for field in schema.get("fields", [])] + [
        schema.get(key) for key in ("items", "values", "type")
    ]
    return own + defined(inner)


def test_a_type_is_written_out_where_it_is_first_used_and_named_after_that() -> None:
    order = record("com.acme.Order", to="Address", back=["null", "com.acme.Address"])
    made = inlined(order, [ADDRESS, STREET])
    assert defined(made) == ["Order", "Address", "Street", "Kind"]
    assert made["fields"][1]["type"] == ["null", "com.acme.Address"]
    fastavro.parse_schema(made)


def test_references_of_references_may_come_in_any_order() -> None:
    order = record(
        "com.acme.Order", to={"type": "array", "items": "Address"}, more={"type": "map", "values": "Address"}
    )
    assert inlined(order, [STREET, ADDRESS]) == inlined(order, [ADDRESS, STREET])


def test_a_type_defined_inside_a_reference_may_be_used_before_the_reference_itself() -> None:
    order = record("com.acme.Order", kind="com.geo.Kind", street="com.geo.Street")
    made = inlined(order, [STREET])
    assert defined(made) == ["Order", "Kind", "Street"]
    fastavro.parse_schema(made)


def test_a_type_of_no_namespace_keeps_its_name_inside_a_record_that_has_one() -> None:
    plain = record("Money", cents="long")
    made = inlined(record("com.acme.Order", price="Money"), [plain])
    parsed: Any = fastavro.parse_schema(made)
    assert parsed["fields"][0]["type"]["name"] == "Money"


def test_a_record_that_holds_itself_is_left_as_it_is() -> None:
    tree = record("com.acme.Tree", leaves={"type": "array", "items": "Tree"}, at="com.geo.Street")
    made = inlined(tree, [STREET])
    assert defined(made) == ["Tree", "Street", "Kind"]
    fastavro.parse_schema(made)


def test_logical_types_defaults_and_properties_stay() -> None:
    at = {"type": "long", "logicalType": "timestamp-micros"}
    order = record("com.acme.Order", at=at, to="Address") | {"topic": "orders", "doc": "An order."}
    order["fields"][0]["default"] = 0
    before = copy.deepcopy(order)
    made = inlined(order, [ADDRESS, STREET])
    assert (made["topic"], made["doc"], made["fields"][0]) == (
        "orders",
        "An order.",
        {"name": "at", "type": at, "default": 0},
    )
    assert order == before


def test_a_name_that_nobody_defines_is_left_for_the_parser_to_name() -> None:
    made = inlined(record("com.acme.Order", to="com.acme.Nowhere"), [STREET])
    with pytest.raises(ValueError, match=r"com\.acme\.Nowhere"):
        fastavro.parse_schema(made)
