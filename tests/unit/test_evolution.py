"""Each kind of change that breaks a reader or a writer is told, with who breaks; what breaks nobody is not."""

from __future__ import annotations

from typing import Any

import pytest

from farandole.contracts.envelope_fields import Schema
from farandole.contracts.evolution.breaks import problems
from farandole.contracts.evolution.history import History, findings
from farandole.contracts.evolution.outline import changes, rows

MOOD: Schema = {"type": "enum", "name": "Mood", "symbols": ["calm", "cross"]}
ITEM: Schema = {"type": "record", "name": "Item", "fields": [{"name": "count", "type": "int"}]}
CARD: Schema = {"type": "record", "name": "Card", "fields": [{"name": "number", "type": "string"}]}
CASH: Schema = {"type": "record", "name": "Cash", "fields": [{"name": "cents", "type": "long"}]}
DECIMAL: Schema = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
MICROS: Schema = {"type": "long", "logicalType": "timestamp-micros"}
NONE = {"default": None}


def record(*fields: tuple[Any, ...], **properties: Any) -> Schema:
    """An event of flow `orders`; each field is its name, its type and what else is said of it."""
    made = [{"name": name, "type": kind, **(more[0] if more else {})} for name, kind, *more in fields]
    return {"type": "record", "name": "Placed", "namespace": "orders"} | properties | {"fields": made}


def one(kind: Any, **more: Any) -> Schema:
    return record(("x", kind, more))


def tree(leaf: str) -> Schema:
    node = {"type": "record", "name": "Node", "fields": [{"name": "value", "type": leaf}]}
    node["fields"].append({"name": "below", "type": {"type": "array", "items": "Node"}})  # type: ignore[attr-defined]
    return one(node)


OLD, NEW, BOTH = ("old",), ("new",), ("new", "old")

BREAKS = {
    "a new field without a default": (record(), one("string"), "x", "missing", NEW),
    "a removed field that had none": (one("string"), record(), "x", "missing", OLD),
    "a promotion: old readers cannot take it back": (one("int"), one("long"), "x", "type", OLD),
    "a demotion": (one("double"), one("float"), "x", "type", NEW),
    "numbers that are rounded": (one("long"), one("double"), "x", "type", BOTH),
    "another type": (one("int"), one("string"), "x", "type", BOTH),
    "another type of an optional field": (one(["null", "int"], **NONE), one(["null", "string"], **NONE), "x", "type", BOTH),
    "bytes that become text": (one("bytes"), one("string"), "x", "type", NEW),
    "null added": (one("int"), one(["null", "int"], **NONE), "x", "null", OLD),
    "null removed": (one(["null", "int"]), one("int"), "x", "null", NEW),
    "a type added to a union": (one([CARD, "null"]), one([CARD, CASH, "null"]), "x", "branch", OLD),
    "a type removed from a union": (one([CARD, CASH]), one([CARD]), "x", "branch", NEW),
    "inside a type of a union": (
        one([CARD, CASH]), one([CARD, CASH | {"fields": [{"name": "cents", "type": "string"}]}]), "x<Cash>.cents", "type", BOTH,
    ),
    "a symbol added without a default symbol": (
        one(MOOD), one(MOOD | {"symbols": ["calm", "cross", "sad"]}), "x", "symbol", OLD,
    ),
    "a symbol removed": (one(MOOD), one(MOOD | {"symbols": ["calm"]}), "x", "symbol", NEW),
    "inside a list": (one({"type": "array", "items": "int"}), one({"type": "array", "items": "string"}), "x", "type", BOTH),
    "inside a record in a list": (
        one({"type": "array", "items": ITEM}),
        one({"type": "array", "items": ITEM | {"fields": [{"name": "count", "type": "string"}]}}), "x[].count", "type", BOTH,
    ),
    "inside a record in a map": (
        one({"type": "map", "values": ITEM}), one({"type": "map", "values": ITEM | {"fields": []}}),
        "x{}.count", "missing", OLD,
    ),
    "deep in a type that holds itself": (tree("int"), tree("string"), "x.value", "type", BOTH),
    "a list that becomes a map": (
        one({"type": "array", "items": "int"}), one({"type": "map", "values": "int"}), "x", "type", BOTH,
    ),
    "another size": (
        one({"type": "fixed", "name": "Hash", "size": 16}), one({"type": "fixed", "name": "Hash", "size": 20}),
        "x", "type", BOTH,
    ),
    "a nested type by another name": (one(ITEM), one(ITEM | {"name": "Line"}), "x", "name", BOTH),
    "an enum by another name": (one(MOOD), one(MOOD | {"name": "Temper"}), "x", "name", BOTH),
    "a nested type whose alias old readers do not know": (
        one(ITEM), one(ITEM | {"name": "Line", "aliases": ["Item"]}), "x", "name", OLD,
    ),
    "another precision of a decimal": (one(DECIMAL), one(DECIMAL | {"precision": 12}), "x", "logical", BOTH),
    "another scale of a decimal": (one(DECIMAL), one(DECIMAL | {"scale": 3}), "x", "logical", BOTH),
    "milliseconds that become microseconds": (
        one(MICROS | {"logicalType": "timestamp-millis"}), one(MICROS), "x", "logical", BOTH,
    ),
    "a plain number that becomes a time": (one("long"), one(MICROS), "x", "logical", BOTH),
    "another unit": (
        one({"type": "long", "unit": "seconds"}), one({"type": "long", "unit": "milliseconds"}), "x", "logical", BOTH,
    ),
    "an id that becomes text": (one({"type": "string", "logicalType": "uuid"}), one("string"), "x", "logical", BOTH),
    "a field renamed with an alias": (one("int"), record(("y", "int", {"aliases": ["x"]})), "x", "renamed", OLD),
    "a field renamed with an alias, a default before": (
        one("int", default=0), record(("y", "int", {"aliases": ["x"], "default": 0})), "x", "renamed", OLD,
    ),
    "the event by another name": (record(), record(name="Ordered"), "", "name", BOTH),
    "another first name": (record(topic="a"), record(topic="a", aliases=["Bought"]), "", "first_name", OLD),
    "another topic": (record(topic="orders.a"), record(topic="orders.b"), "", "topic", ("old", "new")),
}  # fmt: skip


@pytest.mark.parametrize("case", BREAKS)
def test_what_breaks_somebody_is_told(case: str) -> None:
    old, new, field, kind, readers = BREAKS[case]
    (found,) = [problem for problem in problems(old, new) if not problem.warning]
    assert (found.field, found.kind, found.readers) == (field, kind, readers)
    assert len(found.who("version 1", "version 2")) == len(readers)
    assert found.what
    assert found.instead


WITH_DEFAULT = MOOD | {"default": "calm"}

FINE = {
    "nothing": (one("int"), one("int")),
    "a new optional field": (record(), one(["null", "string"], **NONE)),
    "a removed field that had a default": (one("int", default=0), record()),
    "another order": (record(("x", "int"), ("y", "int")), record(("y", "int"), ("x", "int"))),
    "a symbol added, with a default symbol": (one(WITH_DEFAULT), one(WITH_DEFAULT | {"symbols": ["calm", "cross", "sad"]})),
    "the event renamed, with an alias": (record(), record(name="Ordered", aliases=["Placed"])),
    "renamed twice": (record(topic="a", aliases=["X"]), record(name="Ordered", topic="a", aliases=["X", "Placed"])),
    "renamed, with a full alias": (record(), record(name="Ordered", aliases=["orders.Placed"])),
    "another namespace": (record(), record(namespace="shop")),
    "what it is, in words": (one("int"), one("int", doc="how many") | {"doc": "An order."}),
    "a reference in place of a definition": (
        record(("x", ITEM), ("y", "Item", {})), record(("y", ITEM), ("x", "orders.Item")),
    ),
    "a type that holds itself": (tree("int"), tree("int")),
}  # fmt: skip


@pytest.mark.parametrize("case", FINE)
def test_what_breaks_nobody_is_not_told(case: str) -> None:
    assert problems(*FINE[case]) == []


NOTES = {
    "another default": (one("int", default=0), one("int", default=1), "x", "default"),
    "a default dropped": (one("int", default=0), one("int"), "x", "default_dropped"),
    "no longer personal": (one("string", personal=True), one("string"), "x", "personal"),
    "a symbol removed, with a default symbol": (
        one(WITH_DEFAULT), one(WITH_DEFAULT | {"symbols": ["calm"]}), "x", "symbol_as_default",
    ),
    "another default symbol": (one(WITH_DEFAULT), one(WITH_DEFAULT | {"default": "cross"}), "x", "symbol_default"),
    "another stage": (record(topic="t", stage="a"), record(topic="t", stage="b"), "", "stage"),
    "an end that is none": (record(topic="t", terminal="done"), record(topic="t"), "", "terminal"),
    "a new end": (record(topic="t"), record(topic="t", terminal="failed"), "", "terminal"),
    "a person waited for": (record(topic="t"), record(topic="t", blocks=True), "", "blocks"),
    "no longer submitted by users": (record(topic="t", ingest=True), record(topic="t"), "", "ingest"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOTES)
def test_what_a_person_should_know_is_a_warning(case: str) -> None:
    old, new, field, kind = NOTES[case]
    (found,) = problems(old, new)
    assert (found.field, found.kind, found.warning) == (field, kind, True)
    assert found.who("version 1", "version 2") == []


def test_a_break_says_who_why_and_how_to_do_it_instead() -> None:
    (found,) = problems(one(MOOD), one(MOOD | {"symbols": ["calm", "cross", "sad"]}))
    assert found.who("version 1", "the next version") == [
        "readers at version 1 cannot read records of the next version"
    ]
    assert found.what == "symbols new: sad; its readers have no default symbol"
    assert "default symbol first" in found.instead
    (found,) = problems(record(), one(["null", "string"]))
    assert found.instead.startswith("give it a default (such as `= None`)")


def test_another_stage_alone_is_one_schema_on_the_wire_with_a_field_beside_it_is_another() -> None:
    old, new = record(("x", MICROS), topic="t", stage="a"), record(("x", MICROS, {"doc": "when"}), topic="t", stage="b")
    assert "add an optional field in the same release" in problems(old, new)[0].instead
    new["fields"].append({"name": "y", "type": ["null", "int"], "default": None})
    assert "a record keeps the stage it was written with" in problems(old, new)[0].instead


def history(*schemas: Schema, retired: int = 0, name: str = "orders.Placed") -> dict[str, History]:
    return {name: History(name, dict(enumerate(schemas, 1)), retired)}


def test_every_released_version_is_looked_at_not_the_last_one_alone() -> None:
    first, second = one("int", default=0), record()
    (found,) = [each for each in findings([one("string", default="")], history(first, second)) if each.breaks]
    assert (found.versions, found.problem.kind) == (("1",), "type")
    assert problems(second, one("string", default="")) == []


def test_a_name_that_comes_back_is_told_even_with_its_old_type() -> None:
    same = one("int", default=0)
    (found,) = findings([same], history(same, record()))
    assert (found.problem.kind, found.problem.warning, found.versions) == ("came_back", True, ("1",))


def test_the_same_break_of_several_versions_is_told_once() -> None:
    older = one("int"), record(("x", "int"), ("y", "int", {"default": 0}))
    (found,) = findings([one("string")], history(*older))
    assert found.versions == ("1", "2")
    assert "readers at versions 1, 2 cannot read records of the next version" in found.breaks


def test_readers_of_a_retired_version_do_not_count_its_records_do() -> None:
    added, removed = one(["null", "int"], **NONE), record()
    assert findings([added], history(one("int"), retired=1)) == []
    assert findings([removed], history(one("int"), retired=1)) == []
    (found,) = findings([one("string")], history(one("int"), retired=1))
    assert found.problem.readers == ("new",)


def test_a_class_that_is_gone_is_told_until_it_is_retired_or_known_under_a_new_name() -> None:
    (found,) = findings([], history(record()))
    assert (found.event, found.problem.kind) == ("orders.Placed", "gone")
    (found,) = findings([record(name="Ordered")], history(record()))
    assert "aliases" in found.problem.instead
    assert findings([], history(record(), retired=1)) == []
    assert findings([record(name="Ordered", aliases=["Placed"])], history(record())) == []


def test_a_renamed_event_is_held_against_what_was_released_under_its_old_name() -> None:
    (found,) = findings([one("string", default="") | {"name": "Ordered", "aliases": ["Placed"]}], history(one("int")))
    assert (found.event, found.versions) == ("orders.Ordered", ("1 of orders.Placed",))


def test_a_schema_is_laid_out_field_by_field() -> None:
    laid = rows(
        record(("x", {"type": "array", "items": ITEM}, {"personal": True}), ("y", ["null", WITH_DEFAULT], NONE))
    )
    assert [(row.field, row.type, row.default, row.personal) for row in laid] == [
        ("x", "list of Item", "", True),
        ("x[].count", "int", "", False),
        ("y", "null | Mood: calm, cross, others are read as calm", "null", False),
    ]
    assert len(rows(tree("int"))) == 3, "a type that holds itself is laid out once"


def test_what_changed_is_named_field_by_field() -> None:
    old, new = (
        record(("x", "int"), ("z", "int"), stage="a"),
        record(("x", "long"), ("y", "int", {"default": 0}), stage="b"),
    )
    assert [(each.field, each.what, each.old, each.new) for each in changes(old, new)] == [
        ("", "stage", "a", "b"),
        ("x", "type", "int", "long"),
        ("z", "removed", "int", ""),
        ("y", "added", "", "int = 0"),
    ]
