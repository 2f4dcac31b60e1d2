"""What has no faithful form on the wire is refused when the class is defined, with its path and what to use instead."""

from __future__ import annotations

import enum
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pydantic
import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    JsonValue,
    NaiveDatetime,
    PlainSerializer,
    PrivateAttr,
    RootModel,
    SecretStr,
    computed_field,
    create_model,
    field_serializer,
)  # fmt: skip
from typing_extensions import TypeAliasType

from farandole import Unknown
from farandole.contracts.codec import contract, decode
from farandole.errors import ConfigurationError
from tests.unit.test_contracts import envelope
from tests.unit.test_field_kinds import Card, Empty, Level, Page, Strict, Typed, _Base, event, number

REFUSED: list[tuple[Any, str]] = [
    (datetime, "use pydantic.AwareDatetime"),
    (NaiveDatetime, "use pydantic.AwareDatetime"),
    (pydantic.PastDate, "depend on when it is read"),
    (complex, "complex has no Avro form; use two floats"),
    (Decimal, r"say how many digits: Field\(max_digits=12"),
    (Any, "Any has no Avro form; readers must know what comes"),
    (JsonValue, "readers must know what comes"),
    (SecretStr, "leave the secret out"),
    (HttpUrl, "HttpUrl has no Avro form; use str"),
    (Path, "use str"),
    (ipaddress.IPv4Address, "use str"),
    (enum.Enum("Plain", "a b"), "use a str Enum"),
    (enum.IntEnum("Number", "a b"), "use a str Enum"),
    (Literal[1, 2], "a Literal of other values than texts"),
    (Literal["with space"], "'with space' is no Avro enum symbol"),
    (Annotated[list[Literal["a"]], Unknown("a")], r"Unknown is said of something else than a Literal"),
    (Annotated[str | int, Unknown("a")], r"Unknown is said of something else than a Literal"),
    (Annotated[Literal["a"], Unknown("b")], r"Unknown\('b'\) is none of"),
    (dict[int, str], r"use dict\[str, …\]"),
    (list, r"a bare list; say of what"),
    (tuple[int, int], "has no Avro form; use a BaseModel with a field for each"),
    (Sequence[int], r"use list\[…\]"),
    (Mapping[str, int], r"use dict\[str, …\]"),
    (int | float, r"int \| float: a union of several types is ambiguous"),
    (str | UUID, "ambiguous"),
    (date | int, "ambiguous"),
    (str | Level, "ambiguous"),
    (list[int] | set[int], "ambiguous"),
    (dict[str, str] | Card, "told apart by guessing"),
    (Annotated[int | str, Field(union_mode="left_to_right")], "first type that takes them"),
    (Annotated[str, PlainSerializer(str.upper)], "a serializer would not be asked"),
    (pydantic.Base64Bytes, "decodes what is validated"),
    (pydantic.Json[int], "decodes what is validated"),
    (NamedTuple("Point", [("x", int)]), "use a BaseModel"),
    (Typed, "use a BaseModel"),
    (dataclass(type("Data", (), {"__annotations__": {"x": int}})), "use a BaseModel"),
    (RootModel[list[int]], "use the type that it wraps"),
    (_Base, "an event cannot hold an event"),
    (list[Empty], "takes no bytes"),
    (TypeAliasType("Quoted", "int | str"), "write the type without quotes"),
]


@pytest.mark.parametrize(("annotation", "expected"), REFUSED)
def test_what_has_no_faithful_form_is_refused_when_the_class_is_defined(annotation: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected) as caught:
        event(annotation | None if False else annotation)
    assert str(caught.value).startswith("Odd.x")


def test_the_path_leads_into_models_and_containers() -> None:
    class Inner(Strict):
        odd: dict[str, list[complex]]

    with pytest.raises(ConfigurationError, match=r"^Odd\.x\[\]\.odd\{\}\[\]: complex has no Avro form"):
        event(list[Inner])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"__annotations__": {"x": "str"}, "x": Field(exclude=True)}, r"\.x: an excluded field is not on the wire"),
        ({"__annotations__": {"x": "str"}, "x": Field(validation_alias="y")}, "one name for a field"),
        ({"__annotations__": {"größe": "str"}}, "'größe' is no Avro name"),
        ({"__annotations__": {"y": "str", "x": "str"}, "x": Field(alias="y")}, r"\.x: 'y' is also the name of y"),
        ({"__annotations__": {"x": "str", "y": "str"}, "x": Field(alias="y")}, r"\.y: 'y' is also the name of x"),
        ({"_x": PrivateAttr(1)}, "a private attribute is not on the wire"),
        ({"x": computed_field(property(number))}, r"\.x: a computed field is not on the wire"),
        ({"__annotations__": {"x": "str"}, "up": field_serializer("x")(lambda self, x: x)}, r"\.up: a serializer"),
        ({"model_config": ConfigDict(extra="allow")}, "misspelt fields"),
    ],
)  # fmt: skip
def test_what_would_be_written_otherwise_than_it_is_held_is_refused(body: dict[str, Any], expected: str) -> None:
    for base in (_Base, Strict):
        with pytest.raises(ConfigurationError, match=expected):
            event(type("Inner", (base,), {"__module__": __name__, "__annotations__": {}, **body}))


def test_models_without_strictness_and_names_given_twice_are_refused() -> None:
    class Loose(BaseModel):
        x: int

    class Twice(Strict):
        level: Level
        mine: Page[int]

    with pytest.raises(ConfigurationError, match="Loose would take misspelt fields and NaN in silence"):
        event(Loose)
    other: Any = enum.StrEnum("Level", "x y")  # type: ignore[misc]  # the same name, on purpose
    with pytest.raises(ConfigurationError, match=r"Odd\.x\.level: two types are called Level.*rename one"):
        create_model("Odd", __base__=_Base, first=(other, ...), x=(Twice, ...))


def test_only_a_reader_takes_an_unknown_word_for_the_declared_one() -> None:
    class New(enum.StrEnum):
        a = "a"
        b = "b"

    class Old(enum.StrEnum):
        a = "a"
        other = "other"
        __unknown__ = other

    class Greedy(enum.StrEnum):
        a = "a"

        @classmethod
        def _missing_(cls, value: object) -> Greedy:
            return cls.a

    new = event(list[New])
    written = contract(new, "jobs")
    value = written.encode(envelope(), new(x=[New.b]))
    Old.__name__ = "New"
    older = event(list[Old])
    old = contract(older, "jobs")
    assert old.read(decode(value, written.writer, old.writer)) == older(x=[Old.other])
    assert list(Old) == [Old.a, Old.other], "the declaration is no word"
    with pytest.raises(pydantic.ValidationError):
        older(x=["mispelt"])
    with pytest.raises(ConfigurationError, match=r"Greedy\._missing_ takes any word.*__unknown__"):
        event(Greedy)

    class Wrong(enum.StrEnum):
        a = "a"
        __unknown__ = "c"

    with pytest.raises(ConfigurationError, match="expected one of"):
        event(Wrong)
