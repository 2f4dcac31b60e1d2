"""The Avro schema of an event class, derived from the kinds of its fields."""

from __future__ import annotations

import re
from typing import Any

from farandole.contracts import envelope_fields
from farandole.contracts.defaults import in_json
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS, Schema
from farandole.contracts.fields.annotations import kind_of
from farandole.contracts.fields.branches import order
from farandole.contracts.fields.kinds import Array, Choice, Enum, Field, Kind, Map, Scalar
from farandole.errors import ConfigurationError
from farandole.event import Event


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
    clash = set(ENVELOPE_FIELDS) & {field.wire for field in kind_of(event).fields}
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
    rendering = _Rendering()
    fields = [rendering.field(field, f"{event.__name__}.{field.attribute}") for field in kind_of(event).fields]
    return schema | {"fields": [*(envelope_fields.envelope(declared.ingest) if envelope else ()), *fields]}


class _Rendering:
    """One walk over an event's kinds; remembers the named types, which Avro defines once and then refers to."""

    def __init__(self) -> None:
        self.named: set[str] = set()

    def field(self, field: Field, path: str) -> Schema:
        info = field.info
        made: Schema = {"name": field.wire, "type": self.kind(field.kind, field, path)}
        if not info.is_required():
            made["default"] = in_json(field, path)
        if info.description:
            made["doc"] = info.description
        if field.personal:
            made["personal"] = True
        return made

    def kind(self, kind: Kind, field: Field | None, path: str) -> Any:
        """The Avro type; of a record or enum that was defined before, its name. `field` is the one that is of this kind."""
        match kind:
            case Scalar():
                return kind.avro
            case Array():
                return {"type": "array", "items": self.kind(kind.items, None, path)}
            case Map():
                return {"type": "map", "values": self.kind(kind.values, None, path)}
            case Choice():
                # named types are defined where they come first, so the order is settled before they are rendered
                branches = order(kind, field)
                return ["null" if branch is None else self.kind(branch, None, path) for branch in branches]
        if kind.name in self.named:
            return kind.name
        self.named.add(kind.name)
        if isinstance(kind, Enum):
            default = {"default": kind.default} if kind.default else {}
            return {"type": "enum", "name": kind.name, "symbols": list(kind.symbols)} | default
        fields = [self.field(field, f"{path}.{field.attribute}") for field in kind.fields]
        return {"type": "record", "name": kind.name, "fields": fields}
