"""The order of a union's branches: Avro takes a default for the first one, so a default decides it."""

from __future__ import annotations

from typing import Any

from farandole.contracts.fields.advice import refuse
from farandole.contracts.fields.kinds import Array, Choice, Enum, Field, Kind, Record, Scalar

_FACTORIES = (list, dict, set, frozenset, tuple)


def default_of(field: Field, path: str) -> Any:
    """The Python value that a field has when nothing is given. Raises ConfigurationError when only a call would tell."""
    info = field.info
    if info.default_factory is None:
        return info.get_default(call_default_factory=False)
    if info.default_factory in _FACTORIES:
        return info.default_factory()  # none of them takes the data
    raise refuse(path, "a default_factory has no Avro form", "expected a plain default, or list, dict or set")


def order(kind: Choice, field: Field | None = None) -> list[Kind | None]:
    """The branches as they stand in the schema, None for null. `field` is the one that is of this kind itself."""
    default = None if field is None or field.info.is_required() else default_of(field, field.wire)
    null: list[Kind | None] = [None] if kind.nullable else []
    chosen = None if default is None else branch_of(kind, default)
    if chosen is None:
        return [*null, *kind.branches]
    return [chosen, *(branch for branch in kind.branches if branch is not chosen), *null]


def branch_of(kind: Choice, value: Any) -> Kind | None:
    """Which branch takes `value`; None when none does, or null."""
    return next((branch for branch in kind.branches if type(value) in pythons(branch)), None)


def pythons(kind: Kind) -> tuple[type, ...]:
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
