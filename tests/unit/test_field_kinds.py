"""What a field may be: each type that people reach for has its Avro form, or is refused with what to use instead."""

from __future__ import annotations

import enum
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar, cast
from uuid import UUID

import pytest
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    StringConstraints,
    create_model,
)  # fmt: skip
from pydantic.alias_generators import to_camel
from typing_extensions import TypeAliasType, TypedDict

from farandole import Event, Unknown
from farandole.contracts.codec import contract, decode
from farandole.contracts.deriving import derive
from farandole.errors import ConfigurationError
from tests.unit.test_contracts import envelope

T = TypeVar("T")


class Typed(TypedDict):
    x: int


def number(_self: Any) -> int:
    return 1


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Card(Strict):
    kind: Literal["card"] = "card"
    number: str


class Transfer(Strict):
    kind: Literal["transfer"] = "transfer"
    number: str


class Node(Strict):
    name: str
    children: list[Node] = []
    left: Node | None = None


class Page(Strict, Generic[T]):
    items: list[T]


class Empty(Strict):
    pass


class Level(enum.StrEnum):
    LOW = "low"
    HIGH = "high"


Money = Annotated[Decimal, Field(max_digits=6, decimal_places=2)]
Customer = NewType("Customer", str)
Side = TypeAliasType("Side", Literal["left", "right"])
Pair = TypeAliasType("Pair", dict[str, T], type_params=(T,))


#: Made without validation.
WRONG: Any = cast(Any, Node).model_construct(name=5)


def event(annotation: Any, default: Any = ...) -> Any:
    """An event class with the one field x."""
    return create_model("Odd", __base__=_Base, x=(annotation, default))


class _Base(Event, topic="jobs.base"):
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(topic="jobs.odd", **kwargs)


def through(kind: Any, value: Any) -> Any:
    made, written = contract(kind, "jobs"), kind(x=value)
    read: Any = made.read(decode(made.encode(envelope(), written), made.writer))
    assert read == written
    return read.x


NEW_YORK = timezone(timedelta(hours=-5))
KEPT: list[tuple[Any, Any, Any]] = [
    (str, "a\0é\U0001f600", "string"),
    (int, -(2**63), "long"),
    (PositiveInt, 2**63 - 1, "long"),
    (Annotated[int, Field(ge=0, le=9)], 3, "long"),
    (float, 1e-320, "double"),
    (bool, True, "boolean"),
    (bytes, b"\xff\0", "bytes"),
    (UUID, UUID(int=7), {"type": "string", "logicalType": "uuid"}),
    (date, date.min, {"type": "int", "logicalType": "date"}),
    (time, time.max, {"type": "long", "logicalType": "time-micros"}),
    (AwareDatetime, datetime.max.replace(tzinfo=UTC), {"type": "long", "logicalType": "timestamp-micros"}),
    (AwareDatetime, datetime(2026, 1, 2, 3, 4, 5, 678901, NEW_YORK), {"type": "long", "logicalType": "timestamp-micros"}),
    (timedelta, -timedelta(days=40_000, microseconds=1), {"type": "long", "unit": "microseconds"}),
    (Money, Decimal("-1234.50"), {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}),
    (Annotated[str, StringConstraints(max_length=3)], "abc", "string"),
    (Annotated[str, AfterValidator(str.strip)], "abc", "string"),
    (Customer, "c", "string"),
    (Level, Level.LOW, {"type": "enum", "name": "Level", "symbols": ["low", "high"]}),
    (Literal["a", "b"], "a", {"type": "enum", "name": "X", "symbols": ["a", "b"]}),
    (Annotated[Literal["a", "b"], Unknown("b")], "a", {"type": "enum", "name": "X", "symbols": ["a", "b"], "default": "b"}),
    (
        Annotated[Literal["a", "b"] | None, Unknown("b")], "a",
        ["null", {"type": "enum", "name": "X", "symbols": ["a", "b"], "default": "b"}],
    ),
    (
        Annotated[Decimal | None, Field(max_digits=6, decimal_places=2)], Decimal("1.50"),
        ["null", {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}],
    ),
    (Literal["a", None], None, ["null", {"type": "enum", "name": "X", "symbols": ["a"]}]),
    (list[Literal["a"]], ["a"], {"type": "array", "items": {"type": "enum", "name": "X", "symbols": ["a"]}}),
    (Side, "left", {"type": "enum", "name": "Side", "symbols": ["left", "right"]}),
    (Pair[int], {"a": 1}, {"type": "map", "values": "long"}),
    (list[Money], [Decimal("1.2"), Decimal("0E+3")], ...),
    (set[str], {"b", "a"}, {"type": "array", "items": "string"}),
    (frozenset[Card], frozenset([Card(number="1"), Card(number="2")]), ...),
    (tuple[date, ...], (date.max,), ...),
    (dict[Customer, list[timedelta]], {"a\0": [timedelta(seconds=1)]}, ...),
    (int | None, None, ["null", "long"]),
    (int | str | None, "5", ["null", "long", "string"]),
    (int | str, 5, ["long", "string"]),
    (bool | int, 1, ["boolean", "long"]),
    (bool | int, True, ["boolean", "long"]),
    (AwareDatetime | str | None, datetime(2026, 1, 1, tzinfo=UTC), ...),
    (list[int | str] | dict[str, int] | None, [1, "1"], ...),
    (list[int] | Card, Card(number="1"), ...),
    (Card | None, Card(number="1"), ...),
    (Card | Transfer, Transfer(number="1"), ...),
    (Annotated[Card | Transfer, Field(discriminator="kind")], Transfer(number="1"), ...),
    (list[Card | Transfer | None], [None, Transfer(number="1"), Card(number="1")], ...),
    (Node, Node(name="a", children=[Node(name="b", left=Node(name="c"))]), ...),
    (Page[Money], Page[Money](items=[Decimal("1.25")]), ...),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "value", "avro"), KEPT)
def test_a_value_comes_back_equal_and_of_the_same_type(annotation: Any, value: Any, avro: Any) -> None:
    kind = event(annotation)
    if avro is not ...:
        assert derive(kind, "jobs", envelope=False)["fields"][0]["type"] == avro
    assert type(through(kind, value)) is type(value)


def test_an_alias_is_the_name_on_the_wire() -> None:
    class Aliased(Event, topic="jobs.aliased"):
        sender: str = Field(alias="from")

    made = contract(Aliased, "jobs")
    fields = decode(made.encode(envelope(), Aliased(**{"from": "me"})), made.writer)
    assert fields["from"] == "me"
    assert made.read(fields) == Aliased(**{"from": "me"})


def test_what_a_class_says_of_strictness_and_aliases_is_for_its_callers_not_for_readers() -> None:
    class Camel(Event, topic="jobs.camel"):
        model_config = ConfigDict(strict=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=False)
        first_level: Level
        all_of_them: set[int]

    made = contract(Camel, "jobs")
    event = Camel(first_level=Level.LOW, all_of_them={1})
    fields = decode(made.encode(envelope(), event), made.writer)
    assert list(fields)[-2:] == ["firstLevel", "allOfThem"]
    assert made.read(fields) == event


def test_a_class_that_names_a_later_one_is_checked_when_that_is_known() -> None:
    class Early(Event, topic="jobs.early"):
        later: Later

    with pytest.raises(ConfigurationError, match="names a type that does not exist"):
        derive(Early, "jobs")

    class Later(Strict):
        odd: complex

    with pytest.raises(ConfigurationError, match=r"Early\.later\.odd: complex"):
        Early.model_rebuild()


def test_defaults_stand_in_the_schema_as_avro_writes_them() -> None:
    class Defaults(Event, topic="jobs.defaults"):
        day: date = date(1970, 1, 3)
        at: AwareDatetime | None = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
        ref: UUID = UUID(int=1)
        raw: bytes = b"\xff"
        money: Money = Decimal("2.5")
        level: Level | None = Level.HIGH
        span: timedelta = timedelta(seconds=1)
        paid: Card | Transfer | None = Transfer(number="1")
        tags: set[str] = Field(default_factory=set)
        counts: dict[str, int] = {"a": 1}

    fields = {field["name"]: field for field in derive(Defaults, "jobs", envelope=False)["fields"]}
    assert {name: field["default"] for name, field in fields.items()} == {
        "day": 2, "at": 1_000_000, "ref": str(UUID(int=1)), "raw": "\xff", "money": "\x00\xfa", "level": "high",
        "span": 1_000_000, "paid": {"kind": "transfer", "number": "1"}, "tags": [], "counts": {"a": 1},
    }  # fmt: skip
    assert [branch if isinstance(branch, str) else branch["name"] for branch in fields["paid"]["type"]] == [
        "Transfer", "Card", "null",
    ]  # fmt: skip
    bare = contract(create_model("Defaults", __base__=_Base), "jobs")
    value = bare.encode(envelope(), bare.event())
    made = contract(Defaults, "jobs")
    assert made.read(decode(value, bare.writer, made.writer)) == Defaults(), "a reader fills in what was not written"


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        (int, "3", r"Odd\.x: its default: expected int, found str '3'"),
        (list[Node], [WRONG], r"Odd\.x: its default\[0\]\.name"),
        (float, float("nan"), "finite"),
        (list[Card | Transfer], [Transfer(number="1")], r"first branch of Card \| Transfer"),
        (Node, Node(name="a", left=Node(name="b")), r"first branch of Node \| None"),
        (Node, Field(default_factory=lambda: Node(name="x")), "a default_factory has no Avro form"),
    ],
)
def test_a_default_that_the_field_could_not_hold_is_refused(annotation: Any, default: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        derive(event(annotation, default), "jobs")
