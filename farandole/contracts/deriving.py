"""The Avro schema of an event class, derived from its annotations; what has no faithful Avro form is refused here."""

from __future__ import annotations

import enum
import re
import types
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, Literal, Union, get_args, get_origin
from uuid import UUID

from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

from farandole.contracts import envelope_fields
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS, Schema
from farandole.contracts.envelope_fields import UUID as UUID_TYPE
from farandole.errors import ConfigurationError
from farandole.event import Event

_PLAIN: dict[Any, Any] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    bytes: "bytes",
    UUID: UUID_TYPE,
    date: {"type": "int", "logicalType": "date"},
    AwareDatetime: {"type": "long", "logicalType": "timestamp-micros"},
}


def topic_of(event: type[Event], flow: str) -> str:
    """The event's topic, without the namespace; it must start with the flow's name, where the projector looks."""
    topic = event.__event__.topic
    topic = flow + topic if topic.startswith(".") else topic
    if not topic.startswith(f"{flow}."):
        raise ConfigurationError(
            f"event {event.__name__}: topic {topic!r} does not start with the flow's name; expected '{flow}.…' "
            "(the flow is set in [tool.farandole])"
        )
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", topic):
        raise ConfigurationError(f"event {event.__name__}: topic {topic!r}; expected letters, digits, '.', '_' and '-'")
    return topic


def derive(event: type[Event], flow: str, *, envelope: bool = True) -> Schema:
    """The Avro schema of `event` as a JSON-ready dict. Raises ConfigurationError naming the field that has no Avro form.

    With `envelope=False` only the payload's fields: what a stranger may write to an ingest topic.
    """
    clash = set(ENVELOPE_FIELDS) & set(event.model_fields)
    if clash:
        raise ConfigurationError(
            f"event {event.__name__}: field {sorted(clash)[0]!r} is one of the envelope; name it otherwise"
        )
    declared = event.__event__
    properties: Schema = {"topic": topic_of(event, flow), "stage": declared.stage, "terminal": declared.terminal}
    properties |= {"blocks": declared.blocks or None, "ingest": declared.ingest or None}
    schema: Schema = {"type": "record", "name": event.avro_name(), "namespace": flow}
    if declared.aliases:
        schema["aliases"] = list(declared.aliases)
    if event.__doc__ and event.__doc__ is not Event.__doc__:
        schema["doc"] = " ".join(event.__doc__.split())
    schema |= {key: value for key, value in properties.items() if value is not None}
    fields = _Deriver(event.avro_name()).fields(event)
    return schema | {"fields": [*(envelope_fields.envelope(declared.ingest) if envelope else ()), *fields]}


class _Deriver:
    """One walk over an event's annotations; remembers the named types, which Avro defines once and then refers to."""

    def __init__(self, event_name: str) -> None:
        self.event_name = event_name
        self.named: dict[str, type] = {}

    def fields(self, model: type[BaseModel]) -> list[Schema]:
        return [self.field(name, info, f"{self.event_name}.{name}") for name, info in model.model_fields.items()]

    def field(self, name: str, info: FieldInfo, path: str) -> Schema:
        field: Schema = {"name": name, "type": self.kind(info.annotation, path)}
        if not info.is_required():
            default = info.get_default(call_default_factory=False)
            if info.default_factory in (list, dict):
                default = info.default_factory()
            elif info.default_factory is not None:
                raise ConfigurationError(f"{path}: a default_factory has no Avro form; expected a plain default")
            field["type"] = _default_first(field["type"], default)
            field["default"] = default.value if isinstance(default, enum.Enum) else default
        if info.description:
            field["doc"] = info.description
        if isinstance(info.json_schema_extra, dict) and info.json_schema_extra.get("personal"):
            field["personal"] = True
        return field

    def kind(self, kind: Any, path: str) -> Any:
        """The Avro type of one annotation; `path` names the field in errors."""
        if isinstance(kind, type) and kind in _PLAIN:
            return _PLAIN[kind]
        origin, args = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            return self.optional(args, path)
        if origin is list:
            return {"type": "array", "items": self.kind(args[0], f"{path}[]")}
        if origin is dict and args[0] is str:
            return {"type": "map", "values": self.kind(args[1], f"{path}{{}}")}
        if origin is Literal and all(isinstance(symbol, str) for symbol in args):
            return self.enum(
                "".join(word.title() for word in path.split(".")[-1].split("_")), list(args), None, path, kind
            )
        if isinstance(kind, type) and issubclass(kind, enum.Enum) and issubclass(kind, str):
            unknown: Callable[[object], Any] = kind._missing_
            default = unknown("?")
            return self.enum(
                kind.__name__, [str(member.value) for member in kind], default and default.value, path, kind
            )
        if isinstance(kind, type) and issubclass(kind, BaseModel) and not issubclass(kind, Event):
            return self.record(kind, path)
        raise ConfigurationError(f"{path}: {_name(kind)} has no Avro form; {_instead(kind)}")

    def optional(self, args: tuple[Any, ...], path: str) -> list[Any]:
        others = [arg for arg in args if arg is not type(None)]
        if len(others) != 1 or len(others) == len(args):
            raise ConfigurationError(f"{path}: a union of several types is ambiguous on the wire; expected `X | None`")
        return ["null", self.kind(others[0], path)]

    def enum(self, name: str, symbols: list[str], default: str | None, path: str, source: Any) -> Any:
        for symbol in symbols:
            if not symbol.isidentifier() or not symbol.isascii():
                raise ConfigurationError(f"{path}: {symbol!r} is no Avro enum symbol; expected letters, digits and _")
        if self._seen(name, source, path):
            return name
        return {"type": "enum", "name": name, "symbols": symbols} | ({"default": default} if default else {})

    def record(self, model: type[BaseModel], path: str) -> Any:
        if self._seen(model.__name__, model, path):
            return model.__name__
        if model.model_config.get("extra") != "forbid" or model.model_config.get("allow_inf_nan") is not False:
            raise ConfigurationError(
                f"{path}: {model.__name__} would take misspelt fields and NaN in silence; "
                "expected model_config = ConfigDict(extra='forbid', allow_inf_nan=False)"
            )
        fields = [self.field(name, info, f"{path}.{name}") for name, info in model.model_fields.items()]
        return {"type": "record", "name": model.__name__, "fields": fields}

    def _seen(self, name: str, source: Any, path: str) -> bool:
        if name == self.event_name or self.named.get(name, source) != source:
            raise ConfigurationError(f"{path}: two types are called {name}; Avro knows a type by its name alone")
        seen = name in self.named
        self.named[name] = source
        return seen


def _default_first(kind: Any, default: Any) -> Any:
    """Avro takes a union's default for its first branch, so the branch of a default that is not null goes first."""
    if isinstance(kind, list) and default is not None:
        return [branch for branch in kind if branch != "null"] + ["null"]
    return kind


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def _instead(kind: Any) -> str:
    if kind is datetime:
        return "a naive time means another instant on another machine: use pydantic.AwareDatetime"
    plain = "str, int, float, bool, bytes, UUID, date, AwareDatetime"
    return f"use {plain}, a str Enum, Literal, list, dict[str, …], a BaseModel or `X | None`"
