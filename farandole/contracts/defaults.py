"""Defaults as they stand in a schema: JSON, of a union's first branch; what cannot stand there is refused."""

from __future__ import annotations

from typing import Any

from farandole.contracts.fields.branches import branch_of, default_of, order
from farandole.contracts.fields.kinds import Array, Choice, Enum, Field, Kind, Map, Record, Scalar, called
from farandole.contracts.fields.scalars import Misfit
from farandole.contracts.wire.strict import Writing
from farandole.errors import ConfigurationError


def in_json(field: Field, path: str) -> Any:
    """The field's default as it stands in the schema. Raises ConfigurationError for one that the field could not hold."""
    default = default_of(field, path)
    try:
        Writing().of(field.kind)(default)
        return _in_json(field.kind, default, field)
    except Misfit as misfit:
        raise ConfigurationError(f"{path}: its default{misfit.path}: {misfit}") from None


def _in_json(kind: Kind, value: Any, field: Field | None) -> Any:
    match kind:
        case Scalar():
            raw = kind.check(value)
            return raw.decode("latin-1") if isinstance(raw, bytes) else raw
        case Enum():
            return str(getattr(value, "value", value))
        case Array():
            return [_in_json(kind.items, item, None) for item in value]
        case Map():
            return {key: _in_json(kind.values, item, None) for key, item in value.items()}
        case Record():
            return {part.wire: _in_json(part.kind, getattr(value, part.attribute), part) for part in kind.fields}
        case Choice():
            branch = branch_of(kind, value)
            if branch is not order(kind, field)[0]:
                raise Misfit(
                    f"Avro takes what stands in a default for the first branch of {called(kind)}; "
                    "expected that, or a default of None or without items"
                )
            return None if branch is None else _in_json(branch, value, None)
