"""Decoded fields made ready for pydantic: what Avro holds as numbers and bytes, and the branch that was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError

from farandole.contracts.avro import last
from farandole.contracts.fields.branches import order
from farandole.contracts.fields.kinds import Array, Choice, Enum, Field, Kind, Map, Record, Scalar
from farandole.contracts.fields.scalars import Misfit

Read = Callable[[Any], Any]


class Reading:
    """The functions that turn decoded values into what a model takes, compiled once; None for what it takes as it is."""

    def __init__(self) -> None:
        self._records: dict[Record, Read] = {}

    def payload(self, kind: Record) -> Read:
        """What takes an event's own fields out of all that were decoded, as its class takes them."""
        names = [field.wire for field in kind.fields]
        plan = [(field.wire, convert) for field in kind.fields if (convert := self._field(field))]
        return lambda fields: _converted({name: fields[name] for name in names}, plan)

    def of(self, kind: Kind) -> Read | None:
        if not self._needs(kind):
            return None
        match kind:
            case Scalar():
                return kind.read
            case Array():
                return self._array(kind)
            case Map():
                return self._map(kind)
            case Choice():
                return self._choice(kind)
            case Record():
                return self._record(kind)
            case _:
                return None

    def _needs(self, kind: Kind, seen: set[Record] | None = None) -> bool:
        """Whether anything that can lie in it must be converted."""
        seen = set() if seen is None else seen
        match kind:
            case Scalar():
                return kind.read is not None
            case Array():
                return self._needs(kind.items, seen)
            case Map():
                return self._needs(kind.values, seen)
            case Choice():
                models = sum(isinstance(branch, Record) for branch in kind.branches)
                return models > 1 or any(self._needs(branch, seen) for branch in kind.branches)
            case Record():
                if kind in seen:
                    return False
                seen.add(kind)
                return any(self._needs(field.kind, seen) for field in kind.fields)
            case _:
                return False

    def _array(self, kind: Array) -> Read:
        convert = self.of(kind.items) or _as_it_is

        def read(values: Any) -> list[Any]:
            made: list[Any] = []
            try:
                for value in values:
                    made.append(convert(value))  # noqa: PERF401  the length says which one is wrong
            except Misfit as misfit:
                raise misfit.within(f"[{len(made)}]") from None
            return made

        return read

    def _map(self, kind: Map) -> Read:
        convert = self.of(kind.values) or _as_it_is

        def read(values: Any) -> dict[str, Any]:
            made = {}
            key = ""
            try:
                for key, value in values.items():
                    made[key] = convert(value)
            except Misfit as misfit:
                raise misfit.within(f"[{key!r}]") from None
            return made

        return read

    def _record(self, kind: Record) -> Read:
        if kind in self._records:
            return self._records[kind]
        plan: list[tuple[str, Read]] = []  # filled below: the model may be in itself

        def read(fields: Any) -> dict[str, Any]:
            return _converted(dict(fields), plan)  # a copy, since a default belongs to the schema

        self._records[kind] = read
        plan += [(field.wire, convert) for field in kind.fields if (convert := self._field(field))]
        return read

    def _choice(self, kind: Choice) -> Read:
        models = [branch for branch in kind.branches if isinstance(branch, Record)]
        by_raw = {raw: self.of(branch) for branch in kind.branches for raw in _raw(branch)}
        by_name = {model.name: self._instance(model) for model in models} if len(models) > 1 else {}

        def read(value: Any) -> Any:
            if type(value) is tuple:
                return by_name[last(value[0])](value[1])
            convert = by_raw.get(type(value))
            return value if convert is None else convert(value)

        return read

    def _field(self, field: Field) -> Read | None:
        """The branch of a default has no name in a schema: it is the one that goes first there."""
        kind, convert = field.kind, self.of(field.kind)
        first = order(kind, field)[0] if isinstance(kind, Choice) else None
        if not convert or not isinstance(first, Record):
            return convert
        unnamed = self._instance(first)
        return lambda value: unnamed(value) if type(value) is dict else convert(value)

    def _instance(self, kind: Record) -> Read:
        """The instance itself, not its fields: pydantic would guess among models that look alike."""
        convert, model = self.of(kind) or _as_it_is, kind.model

        def read(fields: Any) -> Any:
            try:
                return validated(model, convert(fields))
            except ValidationError as error:
                detail = error.errors()[0]
                raise Misfit(detail["msg"]).within("".join(f".{step}" for step in detail["loc"])) from None

        return read


def validated(model: type[BaseModel], fields: dict[str, Any]) -> Any:
    """An instance from fields by their names on the wire, whatever the class says of strictness and of aliases.

    Raises ValidationError.
    """
    return model.__pydantic_validator__.validate_python(fields, strict=False, by_alias=True, by_name=False)


def _converted(fields: dict[str, Any], plan: list[tuple[str, Read]]) -> dict[str, Any]:
    name = ""
    try:
        for name, convert in plan:
            fields[name] = convert(fields[name])
    except Misfit as misfit:
        raise misfit.within(f".{name}") from None
    return fields


def _as_it_is(value: Any) -> Any:
    return value


def _raw(kind: Kind) -> tuple[type, ...]:
    """The types in which Avro's reader brings a branch."""
    match kind:
        case Scalar():
            return {"int": (int,), "long": (int,), "double": (float,), "boolean": (bool,), "bytes": (bytes, str)}.get(
                kind.raw, (str,)
            )
        case Enum():
            return (str,)
        case Array():
            return (list,)
        case _:
            return (dict,)
