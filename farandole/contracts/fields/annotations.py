"""What a field may be: an annotation becomes a tree of kinds, or is refused with the field and what to use instead."""

from __future__ import annotations

import enum
import re
import types
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from farandole.contracts.avro import PRIMITIVES, is_name
from farandole.contracts.fields import advice
from farandole.contracts.fields.advice import refuse
from farandole.contracts.fields.kinds import Array, Choice, Enum, Field, Kind, Map, Record, Scalar, called, family
from farandole.contracts.fields.scalars import SCALARS, decimal
from farandole.contracts.fields.unknown import Unknown, unknown_of

#: What Avro calls each kind of container, and what becomes of it in Python.
_ARRAYS: dict[Any, type] = {list: list, set: set, frozenset: frozenset, tuple: tuple}


@lru_cache(4096)
def kind_of(model: type[BaseModel]) -> Record:
    """The kinds of an event class's fields. Raises ConfigurationError naming a field that has no faithful Avro form."""
    return _Walk(model).record(model, model.__name__)


class _Walk:
    """One walk over a class and the models in it."""

    def __init__(self, root: type[BaseModel]) -> None:
        self.root = root
        self.records: dict[type, Record] = {}
        self.names: dict[str, Any] = {}
        self.aliases: list[Any] = []  #: those being resolved

    def record(self, model: type[BaseModel], path: str) -> Record:
        if model in self.records:
            return self.records[model]
        advice.check_model(model, path, event=model is self.root)
        name = getattr(model, "avro_name", lambda: _avro_name(model.__name__))()
        made = self.records[model] = Record(model, self.named(name, model, path))
        for name, info in model.model_fields.items():
            inner = f"{path}.{name}"
            advice.check_field(info, inner)
            label = _title(name) if model is self.root else made.name + _title(name)
            wire = info.alias or name
            if not is_name(wire):
                raise refuse(inner, f"{wire!r} is no Avro name", "expected ASCII letters, digits and _")
            if twin := next((field.attribute for field in made.fields if field.wire == wire), None):
                raise refuse(
                    inner, f"{wire!r} is also the name of {twin} on the wire", "give one of them another alias"
                )
            made.fields.append(Field(name, wire, self.kind(info.annotation, info.metadata, inner, label), info))
        return made

    def kind(self, annotation: Any, metadata: Iterable[Any], path: str, label: str) -> Kind:
        """The kind of one annotation. `label` names what has no name of its own, such as a Literal."""
        notes = list(_flat(metadata))
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self.kind(args[0], [*args[1:], *notes], path, label)
        advice.check_notes(notes, path)
        if _hashable(annotation) and annotation in advice.REFUSED:
            raise refuse(path, f"{advice.name(annotation)} has no Avro form", advice.REFUSED[annotation])
        if hasattr(annotation, "__value__") or hasattr(origin, "__value__"):
            return self.alias(annotation, origin, args, notes, path)
        if isinstance(annotation, NewType):
            return self.kind(annotation.__supertype__, notes, path, label)
        if origin is Literal:
            return self.literal(args, notes, path, label)
        if origin in (Union, types.UnionType):
            return self.choice(args, notes, path, label)
        if any(isinstance(note, Unknown) for note in notes):
            raise refuse(path, *advice.NO_LITERAL)
        if _hashable(annotation) and annotation in SCALARS:
            return SCALARS[annotation]
        if annotation is Decimal:
            return decimal(*advice.digits(notes, path))
        return self.container(annotation, origin, args, path, label) or self.named_type(annotation, notes, path)

    def alias(self, annotation: Any, origin: Any, args: tuple[Any, ...], notes: list[Any], path: str) -> Kind:
        """A `type` statement's alias: what it stands for; a Literal takes its name."""
        if annotation in self.aliases:
            raise refuse(path, f"{advice.name(annotation)} refers to itself", "use a BaseModel that does")
        self.aliases.append(annotation)
        found = origin.__value__[args] if origin is not None else annotation.__value__
        if isinstance(found, str):
            raise refuse(
                path, f"{advice.name(annotation)} stands for the text {found!r}", "write the type without quotes"
            )
        made = self.kind(found, notes, path, _avro_name(getattr(annotation, "__name__", "") or str(annotation)))
        self.aliases.pop()
        return made

    def container(self, annotation: Any, origin: Any, args: tuple[Any, ...], path: str, label: str) -> Kind | None:
        if annotation in (list, set, frozenset, tuple, dict):
            raise refuse(path, f"a bare {annotation.__name__}", f"say of what: {annotation.__name__}[…]")
        if origin is tuple and (len(args) != 2 or args[1] is not Ellipsis):
            raise refuse(
                path,
                "a tuple of fixed length has no Avro form",
                "use a BaseModel with a field for each, or tuple[X, ...]",
            )
        if origin in _ARRAYS:
            items = self.kind(args[0], (), f"{path}[]", label)
            if isinstance(items, Record) and items.fields == [] and items.model not in self.unfinished():
                raise refuse(
                    path,
                    f"an item, {items.name}, takes no bytes, so readers cannot bound their number",
                    "give it a field",
                )
            return Array(_ARRAYS[origin], items)
        if origin is dict:
            if not isinstance(key := self.kind(args[0], (), f"{path}{{}}", label), Scalar) or key.python is not str:
                raise refuse(path, f"a dict with keys of {advice.name(args[0])} has no Avro form", "use dict[str, …]")
            return Map(self.kind(args[1], (), f"{path}{{}}", label))
        return None

    def unfinished(self) -> Iterator[type]:
        return (record.model for record in self.records.values() if len(record.fields) < len(record.model.model_fields))

    def choice(self, args: tuple[Any, ...], notes: list[Any], path: str, label: str) -> Kind:
        """What is noted of `X | None` is said of X, as pydantic has it; of several types it may be said of any."""
        single = len(args) == 1 + (type(None) in args)
        if not single and any(isinstance(note, Unknown) for note in notes):
            raise refuse(path, *advice.NO_LITERAL)
        nullable, branches = False, list[Kind]()
        for arg in args:
            if arg is type(None):
                nullable = True
                continue
            made = self.kind(arg, notes if single else (), path, label)
            if isinstance(made, Choice):
                nullable |= made.nullable
                branches += made.branches
            else:
                branches.append(made)
        branches = list(dict.fromkeys(branches))  # Optional aliases in a union may bring the same branch twice
        seen: dict[str, Kind] = {}
        for branch in branches:
            other = seen.setdefault(family(branch), branch)
            if other is not branch and not isinstance(branch, Record):
                wrong = f"{called(other)} | {called(branch)}: a union of several types is ambiguous on the wire"
                raise refuse(
                    path, f"{wrong} when both are {family(branch)}", "use one of them, or a BaseModel for each"
                )
        if {"maps", "records"} <= set(seen):
            raise refuse(path, "a dict and a BaseModel in one union are told apart by guessing", "use two models")
        return Choice(tuple(branches), nullable)

    def literal(self, args: tuple[Any, ...], notes: list[Any], path: str, label: str) -> Kind:
        words = [arg for arg in args if arg is not None]
        if not words or not all(type(word) is str for word in words):
            raise refuse(path, "a Literal of other values than texts has no Avro form", "use texts, or int or bool")
        found = [note.symbol for note in notes if isinstance(note, Unknown)]
        if found and found[0] not in words:
            raise refuse(path, f"Unknown({found[0]!r}) is none of the Literal's words", f"expected one of {words}")
        made = self.enum(label, tuple(words), found[0] if found else None, args, path)
        return Choice((made,), True) if None in args else made

    def enum(self, name: str, symbols: tuple[str, ...], default: str | None, source: Any, path: str) -> Enum:
        if not symbols:
            raise refuse(path, f"{name} has no words", "give it some: an empty enum has no value")
        for symbol in symbols:
            if not is_name(symbol):
                raise refuse(
                    path, f"{symbol!r} is no Avro enum symbol", "expected ASCII letters, digits and _, or use str"
                )
        return Enum(self.named(name, source, path), symbols, default, source)

    def named_type(self, annotation: Any, notes: list[Any], path: str) -> Kind:
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum) and issubclass(annotation, str):
            symbols = tuple(str(member.value) for member in annotation)
            return self.enum(annotation.__name__, symbols, unknown_of(annotation, path), annotation, path)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel) and "__event__" not in dir(annotation):
            return self.record(annotation, path)
        raise refuse(path, f"{advice.name(annotation)} has no Avro form", advice.instead(annotation))

    def named(self, name: str, source: Any, path: str) -> str:
        if not is_name(name) or name in PRIMITIVES:
            raise refuse(
                path,
                f"{name!r} is no name of a type in Avro",
                "expected ASCII letters, digits and _, and none of its own types",
            )
        if self.names.setdefault(name, source) != source:
            raise refuse(path, f"two types are called {name}, and Avro knows a type by its name alone", advice.RENAME)
        return name


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    for note in metadata:
        yield note
        if isinstance(note, FieldInfo):
            yield from note.metadata


def _hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def _title(name: str) -> str:
    return "".join(word.title() for word in name.split("_"))


def _avro_name(name: str) -> str:
    """A generic model's name, `Page[Item]`, without what Avro's names may not have."""
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
