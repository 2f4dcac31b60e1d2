"""The released versions of an event type, and what a changed class would do to readers and records of each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from farandole.contracts.avro import earlier_names, full_name
from farandole.contracts.envelope_fields import Schema
from farandole.contracts.evolution.breaks import Break, problems

#: What the class is called in sentences until it is released.
NEXT = "the next version"


@dataclass(frozen=True, slots=True)
class History:
    """What was released of one event type."""

    name: str  #: full Avro name
    versions: Mapping[int, Schema]  #: by number, 1 first
    retired: int = 0  #: no reader of this version or an older one runs any more; 0: all may

    @property
    def last(self) -> int:
        """The number of the last release; 0 before the first."""
        return max(self.versions, default=0)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a class breaks, or what to know, with the released versions it is about."""

    event: str  #: full Avro name of the class, or of the one that is gone
    versions: tuple[str, ...]  #: such as "1"; of a type that was renamed "1 of orders.Placed"
    problem: Break

    @property
    def breaks(self) -> list[str]:
        """One sentence for each side that breaks; [] for a warning."""
        which = ("version " if len(self.versions) == 1 else "versions ") + ", ".join(self.versions)
        return self.problem.who(which, NEXT)


def findings(schemas: Iterable[Schema], histories: Mapping[str, History]) -> list[Finding]:
    """What the classes' `schemas` do to every released version: breaks first, then what to know.

    Both directions of each version; of a retired one only whether its records are still read.
    """
    classes = {full_name(schema): schema for schema in schemas}
    found = [one for name, schema in classes.items() for one in _of_class(name, schema, histories)]
    renamed = {alias for schema in classes.values() for alias in earlier_names(schema)}
    found += [
        Finding(name, tuple(str(number) for number in history.versions if number > history.retired), _GONE)
        for name, history in histories.items()
        if name not in classes and name not in renamed and history.last > history.retired
    ]
    return sorted(found, key=lambda one: one.problem.warning)


_GONE = Break(
    "",
    "gone",
    "its event class is gone",
    "if it was renamed, name the old one in its class: aliases=(…,). If no record of it is in flight and nobody "
    "reads it any more: `farandole schemas retire`",
    ("new",),
)


def _of_class(name: str, schema: Schema, histories: Mapping[str, History]) -> Iterator[Finding]:
    grouped: dict[Break, list[str]] = {}
    for known in (name, *earlier_names(schema)):
        history = histories.get(known, History(known, {}))
        for number, released in history.versions.items():
            told = f"{number}" if known == name else f"{number} of {known}"
            for one in problems(released, schema):
                kept = _still_counts(one, retired=number <= history.retired, last=number == history.last)
                if kept:
                    grouped.setdefault(kept, []).append(told)
    for problem, versions in grouped.items():
        yield Finding(name, tuple(versions), problem)
    if name in histories:
        yield from _come_back(histories[name], schema)


def _still_counts(one: Break, *, retired: bool, last: bool) -> Break | None:
    """What is to be told of one problem: a warning is about the last release, a retired version has no readers."""
    if one.warning:
        return one if last else None
    readers = tuple(reader for reader in one.readers if not (retired and reader == "old"))
    return replace(one, readers=readers) if readers else None


def _come_back(history: History, schema: Schema) -> Iterator[Finding]:
    """Fields that were left out and are here again: old records hold what the name meant then."""
    if not history.versions:
        return
    last = _fields(history.versions[history.last])
    for name in _fields(schema) - last:
        used = tuple(str(number) for number, old in history.versions.items() if name in _fields(old))
        if used:
            know = "records of those versions give it the value they hold: take another name if it means something else"
            yield Finding(history.name, used, Break(name, "came_back", "the name was used before", know, ()))


def _fields(schema: Schema) -> set[str]:
    return {field["name"] for field in schema["fields"]}


def without(node: Any, key: str) -> Any:
    """A schema, or a part of one, without a property of that name, however deep; defaults are values and stay.

    >>> without({"name": "doc", "doc": "says more", "type": "string"}, "doc")
    {'name': 'doc', 'type': 'string'}
    """
    if isinstance(node, list):
        return [without(branch, key) for branch in node]
    if not isinstance(node, dict):
        return node
    kept = {name: value for name, value in node.items() if name != key}
    kept |= {inner: without(kept[inner], key) for inner in ("type", "items", "values") if inner in kept}
    return kept | ({"fields": [without(field, key) for field in kept["fields"]]} if "fields" in kept else {})
