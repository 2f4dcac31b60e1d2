"""Events made ready for Avro's writer, strictly: what does not fit is refused with the path that leads to it."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from farandole.contracts.kinds import DEEPEST, Array, Choice, Enum, Kind, Map, Record, Scalar, called
from farandole.contracts.scalars import SCALARS, Misfit, expected

Write = Callable[[Any], Any]


_KEY = SCALARS[str].write

#: Types that people derive from, and whose derived values come back equal.
_DERIVABLE = (str, int, float, UUID, datetime, timedelta)


class _Nothing:
    """The type of no value: what must be checked in any case."""


class Writing:
    """The functions that turn values into what Avro's writer takes, one a kind, compiled once.

    `namespace` is that of the schema, since a branch of a union is chosen by its full name, never guessed. The quick form
    leaves to Avro's writer what that refuses by itself, texts that are no UTF-8 and integers beyond 64 bits; `thorough`
    checks these as well, to say where they are.
    """

    def __init__(self, namespace: str, *, thorough: bool = False) -> None:
        self._namespace = namespace
        self._thorough = thorough
        self._records: dict[Record, Write | None] = {}
        self.recursive = False  #: whether a model may hold one of its kind

    def of(self, kind: Kind) -> Write:
        match kind:
            case Scalar():
                return kind.write
            case Enum():
                return _enum(kind)
            case Array():
                return self._array(kind)
            case Map():
                return self._map(kind)
            case Choice():
                return self._choice(kind)
            case Record():
                return self._record(kind)

    def _ready(self, kind: Kind) -> type:
        """The type whose values Avro's writer takes and checks without our help."""
        if isinstance(kind, Choice) and len(kind.branches) == 1:
            kind = kind.branches[0]
        return kind.python if isinstance(kind, Scalar) and kind.unchecked and not self._thorough else _Nothing

    def _record(self, kind: Record) -> Write:
        if kind in self._records:
            found = self._records[kind]
            self.recursive |= found is None
            return found or (lambda value: self._records[kind](value))  # type: ignore[misc]  made by then
        self._records[kind] = None
        plan = [(field.attribute, field.wire, self._ready(field.kind), self.of(field.kind)) for field in kind.fields]
        model, count = kind.model, len(plan)

        def write(value: Any) -> dict[str, Any]:
            if type(value) is not model:
                raise _stranger(model, value)
            held = value.__dict__
            if len(held) != count:
                _check_names(model, held)
            made = {}
            name = ""
            try:
                for name, wire, ready, convert in plan:
                    found = held[name]
                    made[wire] = found if type(found) is ready else convert(found)
            except Misfit as misfit:
                raise misfit.within(f".{name}") from None
            except KeyError:
                _check_names(model, held)
                raise Misfit("is missing; it was made without validation").within(f".{name}") from None
            return made

        self._records[kind] = write
        return write

    def _array(self, kind: Array) -> Write:
        python, ready, convert = kind.python, self._ready(kind.items), self.of(kind.items)
        ordered = python in (list, tuple)

        def write(value: Any) -> list[Any]:
            if type(value) is not python:
                raise expected(called(kind), value)
            made: list[Any] = []
            try:
                for item in value:
                    made.append(item if type(item) is ready else convert(item))
            except Misfit as misfit:
                raise misfit.within(f"[{len(made)}]" if ordered else "[]") from None
            return made if ordered else sorted(made, key=repr)  # the same event has the same bytes in every process

        return write

    def _map(self, kind: Map) -> Write:
        ready, convert = self._ready(kind.values), self.of(kind.values)

        def write(value: Any) -> dict[str, Any]:
            if type(value) is not dict:
                raise expected(called(kind), value)
            made = {}
            key: Any = ""
            try:
                for key, item in value.items():
                    made[_KEY(key)] = item if type(item) is ready else convert(item)
            except Misfit as misfit:
                raise misfit.within(f"[{key!r}]") from None
            return made

        return write

    def _choice(self, kind: Choice) -> Write:
        plan = [self._branch(branch, len(kind.branches) > 1) for branch in kind.branches]
        by_type: dict[type, Write] = {}
        for branch, write in zip(kind.branches, plan, strict=True):
            for python in _pythons(branch):
                by_type[python] = write
        nullable = kind.nullable

        def choose(value: Any) -> Any:
            if value is None and nullable:
                return None
            write = by_type.get(type(value)) or _subclass(by_type, value)
            if write is None:
                raise expected(called(kind), value)
            return write(value)

        return choose

    def _branch(self, kind: Kind, several: bool) -> Write:
        """One branch: named, unless null is all there is beside it and looking at it is cheap."""
        write = self.of(kind)
        if not several and isinstance(kind, Scalar | Enum):
            return write
        name = _full_name(kind, self._namespace)
        return lambda value: (name, write(value))


def _enum(kind: Enum) -> Write:
    words = frozenset(kind.symbols)

    def write(value: Any) -> str:
        if type(value) is kind.source:
            return str(value.value)
        if type(value) is str and value in words:
            return value
        raise expected(f"one of {', '.join(kind.symbols)}", value)

    return write


def _pythons(kind: Kind) -> tuple[type, ...]:
    """The types whose values a branch takes."""
    match kind:
        case Scalar() | Array():
            return (kind.python,)
        case Enum():
            return (kind.source, str) if isinstance(kind.source, type) else (str,)
        case Record():
            return (kind.model,)
        case _:
            return (dict,)


def _subclass(by_type: dict[type, Write], value: Any) -> Write | None:
    """The branch of a value whose type is derived from one that is expected, such as a str Enum's word in a text."""
    plain = (python for python in _DERIVABLE if python in by_type and isinstance(value, python))
    return None if isinstance(value, bool) else by_type.get(next(plain, _Nothing))


def _full_name(kind: Kind, namespace: str) -> str:
    match kind:
        case Scalar():
            return kind.raw
        case Enum() | Record():
            return f"{namespace}.{kind.name}"
        case Array():
            return "array"
        case _:
            return "map"


def _stranger(model: type[BaseModel], value: Any) -> Misfit:
    if isinstance(value, model):
        return Misfit(f"expected exactly {model.__name__}, found its subclass {type(value).__name__}; readers know the former")
    return expected(model.__name__, value)


def _check_names(model: type[BaseModel], held: dict[str, Any]) -> None:
    """Refuse what was put beside the fields: `model_copy(update=…)` and `model_construct` take any name."""
    for name in held:
        if name not in model.model_fields and not isinstance(getattr(model, name, None), cached_property):
            close = difflib.get_close_matches(str(name), model.model_fields, 1)
            meant = f"; expected {close[0]!r}?" if close else f"; expected {', '.join(model.model_fields) or 'none'}"
            raise Misfit(f"{model.__name__} has no field {name!r}{meant}")


def check_depth(value: Any, left: int = DEEPEST) -> None:
    """Refuse what readers, which recurse, may not get to the end of. `value` is as Avro's writer takes it."""
    if isinstance(value, tuple):
        value = value[1]
    if isinstance(value, dict):
        if not left:
            raise Misfit(f"models lie in one another more than {DEEPEST} times; expected less, or ids in place of models")
        for part in value.values():
            check_depth(part, left - 1)
    elif isinstance(value, list):
        for part in value:
            check_depth(part, left)


def branch_of(kind: Choice, value: Any) -> int:
    """Which branch takes `value`, from 0; null is none."""
    return next(at for at, branch in enumerate(kind.branches) if type(value) in _pythons(branch))
