"""Events to bytes, strictly: what does not fit is refused with the path that leads to it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from farandole.contracts.branches import order, pythons
from farandole.contracts.kinds import DEEPEST, Array, Choice, Enum, Field, Kind, Map, Record, Scalar, called
from farandole.contracts.packing import SMALL, Write, long, scalar, text
from farandole.contracts.scalars import SCALARS, Misfit, expected

#: Types that people derive from, and whose derived values come back equal.
_DERIVABLE = (str, int, float, UUID, datetime, timedelta)

_KEY = scalar(SCALARS[str])


class Writing:
    """The functions that write the kinds of one class, straight from an instance's fields to bytes.

    Nothing is dumped first, and nothing is trusted: `model_construct` and `model_copy(update=…)` make instances that nobody has
    validated.
    """

    def __init__(self) -> None:
        self._records: dict[Record, Write] = {}
        self._begun: set[Record] = set()

    def of(self, kind: Kind, field: Field | None = None) -> Write:
        """What writes values of `kind`; `field` is the one that is of this kind itself. It raises Misfit."""
        match kind:
            case Scalar():
                return scalar(kind)
            case Enum():
                return _enum(kind)
            case Array():
                return self._array(kind)
            case Map():
                return self._map(kind)
            case Choice():
                return self._choice(kind, field)
            case Record():
                return self._record(kind)

    def _record(self, kind: Record) -> Write:
        if kind in self._begun:  # perhaps by itself, so that it is looked up when it is called
            return self._records.get(kind) or partial(self._later, kind)
        self._begun.add(kind)
        plan = [(field.attribute, self.of(field.kind, field)) for field in kind.fields]
        model, count = kind.model, len(plan)
        personal = {field.attribute for field in kind.fields if field.personal}

        def write(value: Any) -> bytes:
            if type(value) is not model:
                raise _stranger(model, value)
            held = value.__dict__
            if len(held) != count:
                _check_names(model, held)
            name = ""
            try:
                return b"".join([pack(held[name := attribute]) for attribute, pack in plan])
            except Misfit as misfit:
                told = misfit.hidden() if name in personal else misfit
                raise told.within(f".{name}") from None
            except KeyError:
                _check_names(model, held)
                raise Misfit("is missing; it was made without validation").within(f".{name}") from None

        self._records[kind] = write
        return write

    def _later(self, kind: Record, value: Any) -> bytes:
        return self._records[kind](value)

    def _array(self, kind: Array) -> Write:
        python: Any = kind.python
        pack = self.of(kind.items)
        ordered = python in (list, tuple)

        def write(value: Any) -> bytes:
            if type(value) is not python:
                raise expected(called(kind), value)
            if not value:
                return b"\0"
            made: list[bytes] = []
            try:
                for item in value:
                    made.append(pack(item))  # noqa: PERF401  the length says which one is wrong
            except Misfit as misfit:
                raise misfit.within(f"[{len(made)}]" if ordered else "[]") from None
            if not ordered:
                made.sort()  # the same event has the same bytes in every process
            return long(len(made)) + b"".join(made) + b"\0"

        return write

    def _map(self, kind: Map) -> Write:
        pack = self.of(kind.values)

        def write(value: Any) -> bytes:
            if type(value) is not dict:
                raise expected(called(kind), value)
            if not value:
                return b"\0"
            made: list[bytes] = []
            key: Any = ""
            try:
                for key, item in value.items():
                    made += (_KEY(key), pack(item))
            except Misfit as misfit:
                raise misfit.within(f"[{key!r}]") from None
            return long(len(value)) + b"".join(made) + b"\0"

        return write

    def _choice(self, kind: Choice, field: Field | None) -> Write:
        """The branch is chosen by the value's class, never by its fields: models may look alike."""
        if kind.nullable and len(kind.branches) == 1:
            return self._optional(kind.branches[0], null_first=order(kind, field)[0] is None)
        by_type: dict[type, tuple[bytes, Write]] = {}
        for at, branch in enumerate(order(kind, field)):
            if branch is None:
                by_type[type(None)] = SMALL[at], _null
                continue
            pack = self.of(branch)
            by_type |= dict.fromkeys(pythons(branch), (SMALL[at], pack))

        def write(value: Any) -> bytes:
            index, pack = by_type.get(type(value)) or _derived(by_type, value, kind)
            return index + pack(value)

        return write

    def _optional(self, branch: Kind, *, null_first: bool) -> Write:
        pack = self.of(branch)
        null, other = (SMALL[0], SMALL[1]) if null_first else (SMALL[1], SMALL[0])
        return lambda value: null if value is None else other + pack(value)


def _null(_value: None) -> bytes:
    return b""


def _enum(kind: Enum) -> Write:
    ready = {symbol: SMALL[at] for at, symbol in enumerate(kind.symbols)}
    source = kind.source
    members = {member: ready[member.value] for member in kind.source} if isinstance(source, type) else {}

    def write(value: Any) -> bytes:
        if type(value) is source:
            return members[value]  # looking up its value takes three times as long
        if type(value) is not str or value not in ready:
            raise expected(f"one of {', '.join(kind.symbols)}", value)
        return ready[value]

    return write


def _derived(by_type: dict[type, tuple[bytes, Write]], value: Any, kind: Choice) -> tuple[bytes, Write]:
    """The branch of a value whose type is derived from one that is expected, such as a str Enum's word in a text."""
    if not isinstance(value, bool):
        for python in _DERIVABLE:
            if python in by_type and isinstance(value, python):
                return by_type[python]
    raise expected(called(kind), value)


def _stranger(model: type[BaseModel], value: Any) -> Misfit:
    if isinstance(value, model):
        return Misfit(
            f"expected exactly {model.__name__}, found its subclass {type(value).__name__}; readers know the former"
        )
    return expected(model.__name__, value)


def _check_names(model: type[BaseModel], held: dict[str, Any]) -> None:
    """Refuse what was put beside the fields: `model_copy(update=…)` and `model_construct` take any name."""
    for name in held:
        if name not in model.model_fields and not isinstance(getattr(model, name, None), cached_property):
            close = difflib.get_close_matches(str(name), model.model_fields, 1)
            meant = f"; expected {close[0]!r}?" if close else f"; expected {', '.join(model.model_fields) or 'none'}"
            raise Misfit(f"{model.__name__} has no field {name!r}{meant}")


def check_depth(value: Any, left: int = DEEPEST) -> None:
    """Refuse what readers, which recurse, may not get to the end of."""
    parts: Iterable[Any] = ()
    if isinstance(value, BaseModel):
        if not left:
            raise Misfit(f"models lie in one another more than {DEEPEST} times; expected ids in place of models")
        parts, left = value.__dict__.values(), left - 1
    elif isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        parts = value
    for part in parts:
        check_depth(part, left)


def envelope(raw: dict[str, Any]) -> bytes:
    """The envelope's fields, which come first in every record; `raw` holds the wire's texts and numbers."""
    cause, tenant = raw["causation_id"], raw["tenant"]
    parts = raw["scope_id"], raw["part"], raw["parts"]
    return b"".join(
        (
            text(raw["event_id"]),
            text(raw["trace_id"]),
            _NULL if cause is None else _OTHER + text(cause),
            long(raw["occurred_at"]),
            text(raw["emitted_by"]),
            long(raw["run"]),
            long(raw["hop"]),
            long(raw["attempt"]),
            _NO_PARTS if parts == (None, None, None) else _parts(*parts),
            _NULL if tenant is None else _OTHER + text(tenant),
        )
    )


_NULL, _OTHER = SMALL[0], SMALL[1]
_NO_PARTS = _NULL * 3


def _parts(scope_id: str | None, *numbers: int | None) -> bytes:
    packed = [_NULL if number is None else _OTHER + long(number) for number in numbers]
    return b"".join([_NULL if scope_id is None else _OTHER + text(scope_id), *packed])
