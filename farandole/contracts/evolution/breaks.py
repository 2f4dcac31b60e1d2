"""What a changed schema does to readers and writers of the other version, in words, and how to change it instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from farandole.contracts.avro import last
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS, Schema
from farandole.contracts.evolution.resolution import HARMLESS, Fault, faults

Reader = Literal["old", "new"]

DEFAULT_SYMBOL = (
    "give the enum a default symbol first (`__unknown__`, of a Literal `Unknown`), release that, retire the versions "
    "before it (`farandole schemas retire`), then add symbols"
)


@dataclass(frozen=True, slots=True)
class Break:
    """One place where two versions of an event do not fit; a warning when every record is still read as it was meant."""

    field: str  #: its path, such as `items[].count`; "" for the event itself
    kind: str  #: a stable word
    what: str  #: what changed
    instead: str  #: how to do it instead, or what to know
    readers: tuple[Reader, ...]  #: whose readers break: of the old version, of the new one; () for a warning

    @property
    def warning(self) -> bool:
        return not self.readers

    def who(self, old: str, new: str) -> list[str]:
        """A sentence for each side that breaks; `old` and `new` name the versions, such as "version 1"."""
        verb = _VERBS.get(self.kind, "cannot read")
        sentences = {
            "old": f"readers at {old} {verb} records of {new}",
            "new": f"readers at {new} {verb} records of {old}, which stay in the log",
        }
        return [sentences[reader] for reader in self.readers]


_VERBS = {
    "topic": "never meet",
    "renamed": "lose the value in",
    "gone": "pass over",
    "first_name": "may get twice, under two ids,",
}


def problems(old: Schema, new: Schema) -> list[Break]:
    """What breaks, and what to know, when writers and readers of `old` and `new` run at the same time.

    Looks in both directions: new readers meet old records (a consumer that was upgraded first, and the whole log), old
    readers meet new ones. Breaks come first; [] when nobody notices.
    """
    both = [*_told(faults(old, new), "new"), *_told(faults(new, old), "old")]
    found: dict[tuple[str, str, str], Break] = {}
    for one in both:
        known = found.setdefault((one.field, one.kind, one.what), one)
        if known.readers != one.readers:
            found[one.field, one.kind, one.what] = replace(known, readers=(*known.readers, *one.readers))
    return sorted([*found.values(), *_properties(old, new)], key=lambda one: one.warning)


def _told(found: list[Fault], reader: Reader) -> list[Break]:
    return [told for fault in found if (told := _worded(fault, reader))]


def _worded(fault: Fault, reader: Reader) -> Break | None:
    """The break of a fault. What is harmless is told once, as the new readers see it."""
    old, new = (fault.written, fault.wanted) if reader == "new" else (fault.wanted, fault.written)
    if fault.kind in HARMLESS:
        return _warning(fault, old, new) if reader == "new" and fault.path not in ENVELOPE_FIELDS else None
    what, instead = _words(fault, reader, old, new)
    return Break(fault.path, fault.kind, what, instead, (reader,))


def _words(fault: Fault, reader: Reader, old: str, new: str) -> tuple[str, str]:
    """(what changed, how to do it instead)."""
    match fault.kind, reader:
        case "missing", "new":
            return "is new and has no default", f"give it a default{_default(new)}: what older records are read with"
        case "missing", _:
            return (
                "is gone, and its readers have no default for it",
                "keep it. To drop it later: give it a default, release that, and retire the versions before it "
                "(`farandole schemas retire`)",
            )
        case "renamed", _:
            return (
                f"is called {fault.written!r} now, and only new readers know the alias; old ones "
                "take their default in its place, or fail",
                "keep the name, or add the new field beside it and fill both for one release",
            )
        case "null", "old":
            return f"was {old}, may be null now", "keep it required, or add a new field beside it that may be null"
        case "null", _:
            return f"may be null in older records, is {new} now", "keep `| None`"
        case "symbol", "old":
            return f"symbols new: {fault.written}; its readers have no default symbol", DEFAULT_SYMBOL
        case "symbol", _:
            return (
                f"symbols gone: {fault.written}; the enum has no default symbol",
                "keep them, or give the enum a default symbol (`__unknown__`, of a Literal `Unknown`)",
            )
        case "branch", "old":
            return f"may hold {fault.written} now", "add a field of its own for it, with a default"
        case "branch", _:
            return f"holds {fault.written} in older records, is {new} now", "keep every type that it held"
        case "name", _:
            return _renamed(fault, old, new)
        case "logical", _:
            return f"was {old}, is {new}: readers take the bytes for what their own schema says", _beside(fault.path)
    return f"was {old}, is {new}", _beside(fault.path)


def _beside(path: str) -> str:
    name = "".join(char for char in path.rpartition(".")[2] if char not in "[]{}")
    return (
        f"keep it, and add a new field beside it with a default (such as `{name}_2`); fill both for one release, "
        "then drop the old one if it has a default"
    )


def _default(told: str) -> str:
    return " (such as `= None`)" if "null" in told.split(" | ") else " (or `| None = None`)"


def _renamed(fault: Fault, old: str, new: str) -> tuple[str, str]:
    what = f"its type was called {old}, is called {new}: Avro finds a type by its name"
    if fault.path:
        return what, f"keep the name {old}"
    return f"was called {old}, is called {new}", f"name the old one in its class: aliases=({old!r},)"


def _warning(fault: Fault, old: str, new: str) -> Break:
    match fault.kind:
        case "default":
            what, know = f"default was {old}, is {new}", "readers of two versions fill in different values"
        case "default_dropped":
            what = f"default {old} is gone"
            know = "whoever leaves the field out (another team's smaller class) cannot any more, and it can never go"
        case "personal":
            what, know = "is no longer marked as personal", "masking and erasure pass over it from here on"
        case "symbol_default":
            what, know = f"default symbol was {old or 'absent'}, is {new or 'absent'}", "unknown symbols are read anew"
        case _:
            what, know = f"symbols gone: {old}", f"records that hold them are read as {new}"
    return Break(fault.path, fault.kind, what, know, ())


def _properties(old: Schema, new: Schema) -> Iterator[Break]:
    """What the schema says of the event beside its fields; a schema of fields alone says nothing to compare."""
    if "topic" not in old or "topic" not in new:
        return
    first = _first_name(old)
    if first != _first_name(new):
        what = f"its first name was {first}, is {_first_name(new)}: ids come from it, so what both handle comes twice"
        yield Break("", "first_name", what, f"name {first} first: aliases=({first!r}, …)", ("old",))
    alike = _on_the_wire(old) == _on_the_wire(new)
    for name in ("topic", "stage", "terminal", "blocks", "ingest"):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        what = f"{name} was {_shown(was)}, is {_shown(now)}"
        if name == "topic":
            instead = "declare a new event class for the new topic; emit both until nobody reads the old one"
            yield Break("", name, f"{what}: jobs in flight would wait where nobody looks", instead, ("old", "new"))
        else:
            yield Break("", name, what, _ALIKE if alike and name != "ingest" else _IN_FLIGHT[name](was, now), ())


def _first_name(schema: Schema) -> str:
    return last((schema.get("aliases") or [schema["name"]])[0])


_IN_FLIGHT: dict[str, Callable[[Any, Any], str]] = {
    "stage": lambda was, _: (
        f"a record keeps the stage it was written with: jobs in flight stay {was or 'where they were'} until their "
        "next event, and queries have to know both"
    ),
    "terminal": lambda was, now: (
        f"jobs whose record was written before "
        f"{'have ended ' + repr(was) if was else 'go on'}; those from here on {'end ' + repr(now) if now else 'go on'}, "
        f"so {'what follows this event comes after the end' if now else 'another event has to end them'}"
    ),
    "blocks": lambda _, now: (
        f"jobs {'wait for a person' if now else 'no longer wait'} from here on; those in flight keep what was written"
    ),
    "ingest": lambda _, now: (
        "users may submit it from here on" if now else "clients and `farandole submit` no longer find it by default"
    ),
}


_ALIKE = (
    "no field differs, so records of both versions name one schema and projectors give them all one meaning; "
    "add an optional field in the same release, and records keep what they were written with"
)


def _on_the_wire(node: Any) -> Any:
    """A schema, or a part of one, as far as its fingerprint goes."""
    if isinstance(node, list):
        return [_on_the_wire(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _on_the_wire(node[key]) for key in ("name", "type", "fields", "items", "values") if key in node}
    kept |= {key: node[key] for key in ("symbols", "size") if key in node}
    return kept["type"] if kept.keys() == {"type"} else kept


def _shown(value: object) -> str:
    return "absent" if value is None else repr(value)
