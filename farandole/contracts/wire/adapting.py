"""Avro data read as another schema wants it, by Avro's rules: as strictly as by the schema it was written with.

What a union holds is known from its index alone, so that records which look alike are told by the name of the reader's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from farandole.contracts.avro import PRIMITIVES, PROMOTIONS, last
from farandole.contracts.fields.scalars import Misfit
from farandole.contracts.wire import binary
from farandole.contracts.wire.unpacking import UNPACK, Read

_PROMOTED: dict[str, Callable[[Any], Any]] = {"float": float, "double": float, "long": int, "bytes": str.encode}


def adapter(written: Any, wanted: Any) -> Read:
    """The reader of data written as `written`, both in fastavro's parsed form; values as `binary.reader` gives them.

    What the reader cannot take raises Misfit where it is met: other records of the same schemas may do without it.
    """
    return _Adapting(written, wanted).of(written, wanted)


class _Adapting:
    """One pair of schemas; remembers the readers of pairs of records, which may hold themselves."""

    def __init__(self, written: Any, wanted: Any) -> None:
        self._written = {kind["name"]: kind for kind in _named(written)}
        self._wanted = {kind["name"]: kind for kind in _named(wanted)}
        self._plain = binary.compiler(self._written.values())  #: by the schema they were written with alone
        self._records: dict[tuple[str, str], Read] = {}
        self._begun: set[tuple[str, str]] = set()

    def of(self, w: Any, r: Any) -> Read:
        w, r = _look(w, self._written), _look(r, self._wanted)
        if isinstance(w, list):
            return binary.choice([self.of(branch, r) for branch in w])
        if isinstance(r, list):
            return self._branch(w, r)
        if not self._matches(w, r):
            return _refusing(f"{_told(w)} is written, and {_told(r)} is read")
        match w:
            case str():
                return UNPACK[w] if w == r else _promoted(w, r)
            case {"type": "array"}:
                doubles = w["items"] == r["items"] == "double"  # of which there are thousands, read at once
                return self._plain(w) if doubles else binary.array(self.of(w["items"], r["items"]))
            case {"type": "map"}:
                return binary.map_of(self.of(w["values"], r["values"]))
            case {"type": "enum"}:
                return _symbols(w, r)
            case {"type": "fixed"}:
                return binary.fixed(w["size"])
        return self._record(w, r)

    def _branch(self, w: Any, readers: list[Any]) -> Read:
        """The first branch that takes what is written; of several records with the name of the reader's."""
        kinds = [_look(reader, self._wanted) for reader in readers]
        found = next((kind for kind in kinds if self._matches(w, kind)), None)
        if found is None:
            return _refusing(f"{_told(w)} is written, and {' | '.join(map(_told, kinds))} is read")
        read = self.of(w, found)
        return binary.tagged(found["name"], read) if _is_record(found) and sum(map(_is_record, kinds)) > 1 else read

    def _matches(self, w: Any, r: Any) -> bool:
        if isinstance(w, list) or isinstance(r, list):
            return True  # looked at when the branch that was written is known
        w, r = _look(w, self._written), _look(r, self._wanted)
        if isinstance(w, str) or isinstance(r, str):
            return bool(w == r or (isinstance(w, str) and isinstance(r, str) and (w, r) in PROMOTIONS))
        if w["type"] != r["type"]:
            return False
        if "name" in w:
            names = {w["name"], last(w["name"])}
            same = last(r["name"]) in names or not names.isdisjoint(r.get("aliases", ()))
            return same and w.get("size") == r.get("size")
        inside = "items" if w["type"] == "array" else "values"
        return self._matches(w[inside], r[inside])

    def _record(self, w: Any, r: Any) -> Read:
        pair = w["name"], r["name"]
        if pair in self._begun:  # perhaps by itself, so that it is looked up when it is read
            return partial(self._later, pair)
        self._begun.add(pair)
        mine = {name: field for field in r["fields"] for name in field.get("aliases", ())}
        mine |= {field["name"]: field for field in r["fields"]}
        names = {field["name"]: mine[field["name"]]["name"] for field in w["fields"] if field["name"] in mine}
        rest = [field for field in r["fields"] if field["name"] not in names.values()]
        filled = {field["name"]: field["default"] for field in rest if "default" in field}
        absent = [field["name"] for field in rest if "default" not in field]
        fields = binary.fields([(field["name"], self._field(field, mine)) for field in w["fields"]])

        def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
            held, at = fields(data, at)
            if absent:
                raise Misfit("is not written, and has no default").within(f".{absent[0]}")
            return {names[name]: value for name, value in held.items() if name in names} | filled, at

        self._records[pair] = read
        return read

    def _field(self, w: Any, mine: dict[str, Any]) -> Read:
        """What nobody wants is read as well: bytes that no writer makes are none of an event."""
        return self.of(w["type"], mine[w["name"]]["type"]) if w["name"] in mine else self._plain(w["type"])

    def _later(self, pair: tuple[str, str], data: bytes, at: int) -> tuple[Any, int]:
        return self._records[pair](data, at)


def _named(kind: Any) -> Iterator[Any]:
    """The named types that a schema defines, itself included."""
    if isinstance(kind, list):
        for branch in kind:
            yield from _named(branch)
    elif isinstance(kind, dict):
        if "name" in kind:
            yield kind
        for field in kind.get("fields", ()):
            yield from _named(field["type"])
        for inner in ("type", "items", "values"):
            yield from _named(kind.get(inner))


def _look(kind: Any, named: dict[str, Any]) -> Any:
    """The type itself: of a name its definition, of a primitive its name."""
    if isinstance(kind, str):
        return named.get(kind, kind)
    if not isinstance(kind, dict):
        return kind
    inner = kind["type"]
    return _look(inner, named) if not isinstance(inner, str) or inner in PRIMITIVES or inner in named else kind


def _promoted(w: str, r: str) -> Read:
    plain, convert = UNPACK[w], _PROMOTED.get(r, bytes.decode)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        value, at = plain(data, at)
        return convert(value), at

    return read


def _symbols(w: Any, r: Any) -> Read:
    plain, known, other = binary.enum(w["symbols"]), set(r["symbols"]), r.get("default")

    def read(data: bytes, at: int) -> tuple[str, int]:
        symbol, at = plain(data, at)
        if symbol in known:
            return symbol, at
        if other is None:
            raise Misfit(f"{symbol!r} is written, and one of {', '.join(r['symbols'])} is read")
        return other, at

    return read


def _refusing(wrong: str) -> Read:
    def read(_data: bytes, _at: int) -> tuple[Any, int]:
        raise Misfit(wrong)

    return read


def _is_record(kind: Any) -> bool:
    return isinstance(kind, dict) and kind["type"] == "record"


def _told(kind: Any) -> str:
    return kind if isinstance(kind, str) else last(kind["name"]) if "name" in kind else f"a {kind['type']}"
