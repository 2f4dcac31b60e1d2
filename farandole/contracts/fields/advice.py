"""What an event's field may not be, and what to use instead."""

from __future__ import annotations

import enum
import ipaddress
import pathlib
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any, get_origin

import pydantic
from pydantic import AnyUrl, BaseModel, Json, JsonValue, NaiveDatetime, RootModel
from pydantic.fields import FieldInfo

from farandole.errors import ConfigurationError

#: What to do about two types of one name.
RENAME = "rename one; a Literal gets a name of its own as a str Enum or as `type Name = Literal[…]`"

NO_LITERAL = (
    "Unknown is said of something else than a Literal",
    "write Annotated[Literal[…], Unknown('…')]; an enum class says __unknown__ = '…'",
)

_NAIVE = "a naive time means another instant on another machine: use pydantic.AwareDatetime"
_CLOCK = "whether it is valid would depend on when it is read: use AwareDatetime or date"
_ANY = "readers must know what comes: name the type, or use str and json.dumps"
_SECRET = "an event is kept for long and read by many: leave the secret out, or pass where it lies"

#: By annotation.
REFUSED: dict[Any, str] = {
    datetime: _NAIVE,
    NaiveDatetime: _NAIVE,
    pydantic.PastDatetime: _CLOCK,
    pydantic.FutureDatetime: _CLOCK,
    pydantic.PastDate: _CLOCK,
    pydantic.FutureDate: _CLOCK,
    Any: _ANY,
    object: _ANY,
    JsonValue: _ANY,
    pydantic.SecretStr: _SECRET,
    pydantic.SecretBytes: _SECRET,
    type(None): "leave the field out, or use `X | None`",
    bytearray: "use bytes",
    complex: "use two floats",
    pydantic.ByteSize: "use int",
    pydantic.NameEmail: "use str",
}

_ADDRESSES = (
    ipaddress.IPv4Address | ipaddress.IPv6Address | ipaddress.IPv4Network | ipaddress.IPv6Network
    | ipaddress.IPv4Interface | ipaddress.IPv6Interface
)  # fmt: skip

#: Notes in Annotated or Field that change a value when it is validated once more, as every reader does.
_NOT_TWICE = (pydantic.EncodedBytes, pydantic.EncodedStr, Json)
_SERIALIZERS = (pydantic.PlainSerializer, pydantic.WrapSerializer)


def refuse(path: str, wrong: str, instead: str) -> ConfigurationError:
    """The error that names the field, what is wrong with it, and what to use."""
    return ConfigurationError(f"{path}: {wrong}; {instead}")


def name(annotation: Any) -> str:
    """An annotation in an error."""
    named = getattr(annotation, "__name__", None)
    return str(annotation) if named is None or get_origin(annotation) is not None else str(named)


def instead(annotation: Any) -> str:
    """What to use for a type that has no faithful Avro form."""
    if isinstance(annotation, type):
        if issubclass(annotation, enum.Enum):
            return "use a str Enum: its words are the symbols, whatever numbers mean to the producer"
        if issubclass(annotation, AnyUrl | pathlib.PurePath | _ADDRESSES):
            return "use str"
        if is_dataclass(annotation) or isinstance(getattr(annotation, "_fields", None), tuple):
            return "use a BaseModel"
        if issubclass(annotation, dict) and hasattr(annotation, "__required_keys__"):
            return "use a BaseModel"
        if issubclass(annotation, BaseModel):
            return "an event cannot hold an event: use a BaseModel with the fields"
    if isinstance(origin := get_origin(annotation), type) and issubclass(origin, Mapping):
        return "use dict[str, …]"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return "use list[…]"
    plain = "str, int, float, bool, bytes, UUID, date, time, timedelta, AwareDatetime, Decimal"
    return f"use {plain}, a str Enum, Literal, list, set, tuple[X, ...], dict[str, …], a BaseModel or `X | None`"


def digits(notes: list[Any], path: str) -> tuple[int, int]:
    """(precision, scale) of a Decimal, from its field's notes."""
    held = {key: value for note in notes for key, value in vars_of(note).items()}
    precision, scale = held.get("max_digits"), held.get("decimal_places")
    if precision is None or scale is None or not 0 <= scale <= precision or precision < 1:
        raise refuse(
            path,
            "Decimal has no Avro form of its own",
            "say how many digits: Field(max_digits=12, decimal_places=2), the latter not above the former",
        )
    return precision, scale


def vars_of(note: Any) -> dict[str, Any]:
    return getattr(note, "__dict__", {}) if not isinstance(note, FieldInfo) else {}


def check_model(model: type[BaseModel], path: str, *, event: bool) -> None:
    """Refuse a model whose instances are more, or something else, than their fields."""
    title = "" if event else f"{model.__name__} "
    if issubclass(model, RootModel):
        raise refuse(path, f"{title}is a RootModel, a record without fields", "use the type that it wraps")
    if not model.__pydantic_fields_complete__ and not model.model_rebuild(raise_errors=False):
        raise refuse(path, f"{title}names a type that does not exist", "define it before the event is used")
    if model.model_config.get("extra") != "forbid" or model.model_config.get("allow_inf_nan") is not False:
        raise refuse(
            path,
            f"{title}would take misspelt fields and NaN in silence",
            "expected model_config = ConfigDict(extra='forbid', allow_inf_nan=False)",
        )
    found = model.__pydantic_decorators__
    if found.computed_fields:
        raise refuse(
            f"{path}.{next(iter(found.computed_fields))}",
            "a computed field is not on the wire",
            "use a plain @property",
        )
    if found.field_serializers or found.model_serializers:
        serializer = next(iter(found.field_serializers | found.model_serializers))
        raise refuse(f"{path}.{serializer}", _SERIALIZER, _CONVERT)
    if model.__private_attributes__:
        raise refuse(
            f"{path}.{next(iter(model.__private_attributes__))}",
            "a private attribute is not on the wire, so what is read would differ from what was written",
            "use a field, or functools.cached_property",
        )


_SERIALIZER = "a serializer would not be asked: events are written as their attributes are"
_CONVERT = "convert in a validator, or add a field"


def check_field(info: FieldInfo, path: str) -> None:
    """Refuse a field that pydantic would leave out, or call otherwise when it is read than when it is written."""
    if info.exclude or getattr(info, "exclude_if", None):
        raise refuse(path, "an excluded field is not on the wire", "leave it out of the event")
    names = {info.alias, info.validation_alias, info.serialization_alias}
    if len(names) > 1:
        raise refuse(path, "the wire has one name for a field", "use Field(alias='…') alone, or none")


def check_notes(notes: Iterable[Any], path: str) -> None:
    """Refuse what Annotated or Field say of a value that would come back otherwise."""
    for note in notes:
        if isinstance(note, _SERIALIZERS):
            raise refuse(path, _SERIALIZER, _CONVERT)
        if isinstance(note, _NOT_TWICE) or (isinstance(note, type) and issubclass(note, _NOT_TWICE)):
            raise refuse(
                path,
                f"{name(type(note))} decodes what is validated, and readers validate what was decoded already",
                "use str or bytes, or the type behind it",
            )
        if vars_of(note).get("union_mode") == "left_to_right":
            raise refuse(path, "union_mode='left_to_right' turns values into the first type that takes them", "drop it")
