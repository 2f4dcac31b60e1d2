"""The kinds of values that a field may have: what an annotation becomes, and what schema, writing and reading come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from farandole.contracts.scalars import Scalar

#: How many models may lie in one another when they refer to themselves. Readers in any language recurse.
DEEPEST = 64


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    """Words from a closed list."""

    name: str
    symbols: tuple[str, ...]
    default: str | None  #: what a reader takes a symbol for that it does not know
    source: Any  #: the enum class, or the Literal


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    python: type  #: list, set, frozenset or tuple
    items: Kind


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    values: Kind


@dataclass(slots=True, eq=False)
class Record:
    """A model; its fields come last, since one of them may be of this very kind."""

    model: type[BaseModel]
    name: str
    fields: list[Field] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of several kinds, or None."""

    branches: tuple[Kind, ...]
    nullable: bool


Kind = Scalar | Enum | Array | Map | Record | Choice


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of a record."""

    attribute: str
    wire: str  #: its name in the schema: the alias, where it has one
    kind: Kind
    info: FieldInfo

    @property
    def personal(self) -> bool:
        """Whether it holds personal data, as `farandole.personal` marks it."""
        extra = self.info.json_schema_extra
        return isinstance(extra, dict) and bool(extra.get("personal"))


def family(kind: Kind) -> str:
    """What Avro's readers may take for one another: a union has at most one branch of each, records apart."""
    match kind:
        case Scalar():
            raw = kind.raw
            return "numbers" if raw in ("int", "long", "double") else raw if raw == "boolean" else "texts or bytes"
        case Enum():
            return "texts or bytes"
        case Array():
            return "arrays"
        case Map():
            return "maps"
        case _:
            return "records"


def called(kind: Kind) -> str:
    """A kind in an error, in Python's words."""
    match kind:
        case Scalar():
            return kind.python.__name__
        case Array():
            return f"{kind.python.__name__}[{called(kind.items)}]"
        case Map():
            return f"dict[str, {called(kind.values)}]"
        case Choice():
            return " | ".join([*map(called, kind.branches), *(["None"] if kind.nullable else [])])
        case _:
            return kind.name


__all__ = ["DEEPEST", "Array", "Choice", "Enum", "Field", "Kind", "Map", "Record", "Scalar", "called", "family"]
