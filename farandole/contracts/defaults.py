"""Defaults as they stand in a schema: JSON, of a union's first branch; what cannot stand there is refused."""

from __future__ import annotations

from typing import Any

from pydantic.fields import FieldInfo

from farandole.contracts.advice import refuse
from farandole.contracts.kinds import Array, Choice, Field, Kind, Map, Record, called
from farandole.contracts.scalars import Misfit
from farandole.contracts.strict import Writing, branch_of
from farandole.errors import ConfigurationError

_FACTORIES = (list, dict, set, frozenset, tuple)


def default_of(field: Field, path: str) -> Any:
    """The Python value that a field has when nothing is given. Raises ConfigurationError when only a call would tell."""
    info: FieldInfo = field.info
    if info.default_factory is None:
        return info.get_default(call_default_factory=False)
    if info.default_factory in _FACTORIES:
        return info.default_factory()  # type: ignore[call-arg]  none of them takes the data
    raise refuse(path, "a default_factory has no Avro form", "expected a plain default, or list, dict or set")


def first_branch(kind: Kind, field: Field | None, path: str) -> int | None:
    """Which branch of a union goes first, from 0, None for null: Avro takes a default for the first one."""
    if not isinstance(kind, Choice):
        return None
    if field is not None and not field.info.is_required():
        default = default_of(field, path)
        return None if default is None else branch_of(kind, default)
    return None if kind.nullable else 0


def in_json(field: Field, path: str) -> Any:
    """The field's default as it stands in the schema. Raises ConfigurationError for one that the field could not hold."""
    default = default_of(field, path)
    try:
        Writing("", thorough=True).of(field.kind)(default)
        return _in_json(field.kind, default, first_branch(field.kind, field, path), path)
    except Misfit as misfit:
        raise ConfigurationError(f"{path}: its default{misfit.path}: {misfit}") from None


def _in_json(kind: Kind, value: Any, first: int | None, path: str) -> Any:
    match kind:
        case Choice():
            branch = None if value is None else branch_of(kind, value)
            if branch != first:
                raise Misfit(
                    f"Avro takes a value in a default for the first branch of {called(kind)}; "
                    "expected one of that, or a default of None or an empty list"
                )
            return None if branch is None else _in_json(kind.branches[branch], value, None, path)
        case Array():
            order = first_branch(kind.items, None, path)
            return [_in_json(kind.items, item, order, path) for item in value]
        case Map():
            order = first_branch(kind.values, None, path)
            return {key: _in_json(kind.values, item, order, path) for key, item in value.items()}
        case Record():
            return {
                part.wire: _in_json(part.kind, getattr(value, part.attribute), first_branch(part.kind, part, path), path)
                for part in kind.fields
            }
    written = Writing("").of(kind)(value)
    return written.decode("latin-1") if isinstance(written, bytes) else written
