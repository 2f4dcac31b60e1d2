"""Avro's resolution rules: what a reader's schema cannot make of records that were written with another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from farandole.contracts.avro import PRIMITIVES, PROMOTIONS, full, last
from farandole.contracts.envelope_fields import Schema

#: Of Avro's promotions, those that fail or round for some values: a float holds 24 bits of a number, a double 53; few bytes
#: are text.
LOSSY = frozenset({("int", "float"), ("long", "float"), ("long", "double"), ("bytes", "string")})

#: Kinds of faults that lose nothing; a person should know of them all the same.
HARMLESS = frozenset({"default", "default_dropped", "personal", "symbol_as_default", "symbol_default"})


@dataclass(frozen=True, slots=True)
class Fault:
    """One place where a reader's schema does not fit a writer's."""

    path: str  #: of the reader's field, such as `items[].count`; "" for the event itself
    kind: str  #: a stable word: missing, renamed, type, null, branch, symbol, name, logical, or one of HARMLESS
    written: str  #: the writer's side in words; "" when it has nothing there
    wanted: str  #: the reader's side in words; "" when it has nothing there


class Named:
    """A schema with its named types by full name, so that a reference is one look-up."""

    def __init__(self, schema: Schema) -> None:
        self.types: dict[str, Schema] = {}
        self.root = self._take(schema, "")

    def look(self, node: Any) -> Any:
        """The type itself where `node` refers to one by name."""
        return self.types[node["ref"]] if isinstance(node, dict) and "ref" in node else node

    def _take(self, kind: Any, namespace: str) -> Any:
        if isinstance(kind, list):
            return [self._take(branch, namespace) for branch in kind]
        if isinstance(kind, str):
            return {"type": kind} if kind in PRIMITIVES else {"ref": full(kind, namespace)}
        what = kind["type"]
        if what == "array":
            return {**kind, "items": self._take(kind["items"], namespace)}
        if what == "map":
            return {**kind, "values": self._take(kind["values"], namespace)}
        if what in ("record", "error", "enum", "fixed"):
            return self._define(kind, namespace)
        return kind if isinstance(what, str) and what in PRIMITIVES else self._take(what, namespace)

    def _define(self, kind: Schema, namespace: str) -> Schema:
        name = full(kind["name"], kind.get("namespace", namespace))
        inside = name.rpartition(".")[0]
        made = self.types[name] = {**kind, "name": name}  # before its fields, which may refer to it
        if "fields" in kind:
            made["fields"] = [{**field, "type": self._take(field["type"], inside)} for field in kind["fields"]]
        return {"ref": name}


def faults(written: Schema, wanted: Schema) -> list[Fault]:
    """Where a reader with schema `wanted` fails, or gets another value, on records written with `written`.

    Rules of Avro 1.12, and stricter than these: a changed logical type is a fault, a field that only a new name's alias
    leads to is one for readers that do not know the alias, and promotions that round are. The records themselves also
    fit when the *writer's* aliases hold the reader's name: readers of this runtime look there.
    """
    if written == wanted:
        return []  # nothing is resolved; else the first branch that matches is taken, though a later one be the same
    return list(dict.fromkeys(_Resolver(Named(written), Named(wanted)).run()))


class _Resolver:
    """One walk over both schemas. A pair of named types is looked at once: recursive ones end, and repeats say no more."""

    def __init__(self, written: Named, wanted: Named) -> None:
        self.written, self.wanted = written, wanted
        self.seen: set[tuple[str, str]] = set()

    def run(self) -> Iterator[Fault]:
        w, r = self.written.look(self.written.root), self.wanted.look(self.wanted.root)
        if w["type"] == r["type"] == "record" and (_same_name(w, r) or last(r["name"]) in _aliases(w)):
            yield from self.records(w, r, "")
        else:
            yield from self.walk(self.written.root, self.wanted.root, "")

    def walk(self, w: Any, r: Any, path: str) -> Iterator[Fault]:
        """The faults of reading `w` as `r`, both as they stand in their schemas."""
        if isinstance(w, list) or isinstance(r, list):
            yield from self.unions(w, r, path)
            return
        w, r = self.written.look(w), self.wanted.look(r)
        if not self.matches(w, r):
            kind = "name" if w["type"] == r["type"] and "name" in w and w.get("size") == r.get("size") else "type"
            yield Fault(path, kind, told(w, self.written), told(r, self.wanted))
        elif _logical(w) != _logical(r):
            yield Fault(path, "logical", told(w, self.written), told(r, self.wanted))
        elif w["type"] == "array":
            yield from self.walk(w["items"], r["items"], f"{path}[]")
        elif w["type"] == "map":
            yield from self.walk(w["values"], r["values"], f"{path}{{}}")
        elif w["type"] == "enum":
            yield from _symbols(w, r, path)
        elif w["type"] == "record":
            yield from self.records(w, r, path)
        elif (w["type"], r["type"]) in LOSSY:
            yield Fault(path, "type", w["type"], r["type"])

    def unions(self, w: Any, r: Any, path: str) -> Iterator[Fault]:
        """Every branch that may be written has to be read: by the first of the reader's that matches it."""
        branches, readers = (x if isinstance(x, list) else [x] for x in (w, r))
        several = len([branch for branch in branches if branch != {"type": "null"}]) > 1
        for branch in branches:
            found = next((one for one in readers if self.matches(branch, one)), None)
            if found is not None:
                inner = f"{path}<{told(branch, self.written)}>" if several and "ref" in branch else path
                yield from self.walk(branch, found, inner)
            elif branch == {"type": "null"}:
                yield Fault(path, "null", told(w, self.written), told(r, self.wanted))
            elif several:
                yield Fault(path, "branch", told(branch, self.written), told(r, self.wanted))
            else:
                yield Fault(path, "type", told(w, self.written), told(r, self.wanted))

    def matches(self, w: Any, r: Any) -> bool:
        """Avro's rule for whether two types match, which chooses the branch of a union."""
        if isinstance(w, list) or isinstance(r, list):
            return True  # looked at when the branch that was written is known
        w, r = self.written.look(w), self.wanted.look(r)
        if w["type"] != r["type"]:
            return (w["type"], r["type"]) in PROMOTIONS
        if "name" in w:
            return _same_name(w, r) and w.get("size") == r.get("size")
        inside = {"array": "items", "map": "values"}.get(w["type"])
        return inside is None or self.matches(w[inside], r[inside])

    def records(self, w: Schema, r: Schema, path: str) -> Iterator[Fault]:
        if (w["name"], r["name"]) in self.seen:
            return
        self.seen.add((w["name"], r["name"]))
        theirs = {field["name"]: field for field in w["fields"]}
        for mine in r["fields"]:
            inner = f"{path}.{mine['name']}".lstrip(".")
            names = [mine["name"], *mine.get("aliases", ())]
            field = next((theirs[name] for name in names if name in theirs), None)
            if field is not None:
                yield from _of_the_field(field, mine, inner)
                yield from self.walk(field["type"], mine["type"], inner)
                continue
            later = [name for name, other in theirs.items() if mine["name"] in other.get("aliases", ())]
            if later:
                yield Fault(inner, "renamed", later[0], mine["name"])
            elif "default" not in mine:
                yield Fault(inner, "missing", "", told(mine["type"], self.wanted))


def told(node: Any, names: Named) -> str:
    """A type in a few words.

    >>> told(["null", {"type": "array", "items": "long"}], Named({"type": "record", "name": "Any", "fields": []}))
    'null | list of long'
    """
    if isinstance(node, list):
        return " | ".join(told(branch, names) for branch in node)
    if isinstance(node, str):
        return node
    node = names.look(node)
    match node["type"]:
        case "array":
            return f"list of {told(node['items'], names)}"
        case "map":
            return f"map of {told(node['values'], names)}"
        case "fixed":
            return f"{last(node['name'])} ({_logical_words(node) or str(node['size']) + ' bytes'})"
    return last(node["name"]) if "name" in node else _logical_words(node) or str(node["type"])


def _symbols(w: Schema, r: Schema, path: str) -> Iterator[Fault]:
    unknown = ", ".join(symbol for symbol in w["symbols"] if symbol not in r["symbols"])
    if unknown and r.get("default") not in r["symbols"]:
        yield Fault(path, "symbol", unknown, "")
    elif unknown:
        yield Fault(path, "symbol_as_default", unknown, r["default"])
    if w.get("default") != r.get("default"):
        yield Fault(path, "symbol_default", w.get("default") or "", r.get("default") or "")


def _of_the_field(w: Schema, r: Schema, path: str) -> Iterator[Fault]:
    """What changed about a field beside its type: nothing fails for it."""
    if "default" in w and "default" not in r:
        yield Fault(path, "default_dropped", repr(w["default"]), "")
    elif "default" in w and "default" in r and w["default"] != r["default"]:
        yield Fault(path, "default", repr(w["default"]), repr(r["default"]))
    if w.get("personal") and not r.get("personal"):
        yield Fault(path, "personal", "personal", "")


def _logical(node: Schema) -> tuple[Any, ...]:
    """What a type means beside the values it holds: its logical type, and the unit where it tells one."""
    name, unit = node.get("logicalType"), node.get("unit")
    return (name, unit, node.get("precision"), node.get("scale", 0)) if name == "decimal" else (name, unit)


def _logical_words(node: Schema) -> str:
    name, unit, *digits = _logical(node)
    if unit:
        return f"{name or node['type']} in {unit}"
    return f"decimal({', '.join(map(str, digits))})" if digits else name or ""


def _same_name(w: Schema, r: Schema) -> bool:
    return last(w["name"]) == last(r["name"]) or last(w["name"]) in _aliases(r)


def _aliases(node: Schema) -> set[str]:
    return {last(alias) for alias in node.get("aliases", ())}
