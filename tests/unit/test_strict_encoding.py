"""What no reader could make sense of never leaves the producer: it is refused with the path that leads to it."""

from __future__ import annotations

import enum
import math
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import cached_property
from io import BytesIO
from typing import Annotated, Any, cast

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from farandole import Event, personal
from farandole.contracts import strict
from farandole.contracts.codec import Contract, contract, decode
from farandole.contracts.packing import long, text
from farandole.errors import ConfigurationError
from tests.unit.test_contracts import envelope


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Order(Strict):
    number: str
    cents: int = 0


class Refund(Strict):
    """Looks like an order."""

    number: str
    cents: int = 0


class RushOrder(Order):
    by: date | None = None


class Level(enum.StrEnum):
    LOW = "low"


class Tree(Strict):
    left: Tree | None = None


class Sale(Event, topic="jobs.sale"):
    text: str = ""
    number: int = 0
    share: float = 0.0
    flag: bool = False
    raw: bytes = b""
    day: date = date(2026, 1, 2)
    at: AwareDatetime = datetime(2026, 1, 2, tzinfo=UTC)
    clock: time = time(1, 2)
    span: timedelta = timedelta(0)
    price: Annotated[Decimal, Field(max_digits=5, decimal_places=2)] = Decimal(1)
    level: Level = Level.LOW
    orders: list[Order] = []
    by_name: dict[str, list[Order]] = {}
    either: Order | Refund | None = None
    mixed: int | str | None = None
    tags: set[str] = Field(default_factory=set)
    pair: tuple[int, ...] = ()
    tree: Tree | None = None

    @cached_property
    def shout(self) -> str:
        return self.text.upper()


def made() -> Contract:
    return contract(Sale, "jobs")


def smuggled(**fields: Any) -> Sale:
    """A sale that nobody has validated."""
    return Sale().model_copy(update=fields)


#: Made without validation.
NOTHING_SET: Any = cast(Any, Order).model_construct()
NAIVE = datetime(2026, 1, 2)  # noqa: DTZ001  the point
SYDNEY, BOSTON = timezone(timedelta(hours=10)), timezone(timedelta(hours=-5))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"text": 5}, ".text: expected str, found int 5"),
        ({"text": b"x"}, ".text: expected str, found bytes b'x'"),
        ({"text": None}, ".text: expected str, found None"),
        ({"text": "ab\ud83d"}, ".text: half a surrogate pair at character 2"),
        ({"number": True}, ".number: expected int, found bool True"),
        ({"number": 2**63}, ".number: expected a number of at most 64 bits, found one of 65"),
        ({"number": -(2**63) - 1}, ".number: expected a number of at most 64 bits"),
        ({"number": 1.0}, ".number: expected int, found float 1.0"),
        ({"share": float("nan")}, ".share: expected a finite float, found nan"),
        ({"share": float("-inf")}, ".share: expected a finite float"),
        ({"share": 1}, ".share: expected float, found int 1"),
        ({"flag": 1}, ".flag: expected bool, found int 1"),
        ({"raw": "x"}, ".raw: expected bytes, found str 'x'"),
        ({"raw": bytearray(b"x")}, ".raw: expected bytes"),
        ({"day": datetime(2026, 1, 2, tzinfo=UTC)}, ".day: expected date, found datetime"),
        ({"at": NAIVE}, ".at: expected a datetime with a time zone, found 2026-01-02T00:00:00"),
        ({"at": datetime.max.replace(tzinfo=BOSTON)}, ".at: expected an instant of the years 1 to 9999"),
        ({"at": datetime.min.replace(tzinfo=SYDNEY)}, ".at: expected an instant of the years 1 to 9999"),
        ({"at": "2026-01-02"}, ".at: expected datetime, found str"),
        ({"clock": time(1, tzinfo=UTC)}, ".clock: expected a time without a zone"),
        ({"span": timedelta.max}, ".span: expected a number of at most 64 bits"),
        ({"price": Decimal("1.001")}, ".price: expected a Decimal of at most 5 digits, 2 of them behind the point"),
        ({"price": Decimal(1000)}, ".price: expected a Decimal of at most 5 digits"),
        ({"price": Decimal("1E+999999")}, ".price: expected a Decimal"),
        ({"price": Decimal("1E-999999")}, ".price: expected a Decimal"),
        ({"price": Decimal("NaN")}, ".price: expected a Decimal"),
        ({"price": 1}, ".price: expected a Decimal"),
        ({"level": "hihg"}, ".level: expected one of low, found str 'hihg'"),
        ({"level": None}, ".level: expected one of low"),
        ({"orders": (Order(number="1"),)}, ".orders: expected list[Order], found tuple"),
        ({"orders": [Order(number="1"), {"number": "2"}]}, ".orders[1]: expected Order, found dict"),
        ({"orders": [Order(number="1"), Refund(number="2")]}, ".orders[1]: expected Order, found Refund"),
        ({"orders": [Order(number="1").model_copy(update={"cents": "1"})]}, ".orders[0].cents: expected int"),
        ({"by_name": {"a": [NOTHING_SET]}}, ".by_name['a'][0].number: is missing"),
        ({"by_name": {5: []}}, ".by_name[5]: expected str, found int 5"),
        ({"orders": [RushOrder(number="1")]}, ".orders[0]: expected exactly Order, found its subclass RushOrder"),
        ({"either": RushOrder(number="1")}, ".either: expected Order | Refund | None, found RushOrder"),
        ({"either": {"number": "1"}}, ".either: expected Order | Refund | None, found dict"),
        ({"mixed": True}, ".mixed: expected int | str | None, found bool True"),
        ({"mixed": 1.5}, ".mixed: expected int | str | None, found float 1.5"),
        ({"mixed": 2**64}, ".mixed: expected a number of at most 64 bits"),
        ({"tags": ["a"]}, ".tags: expected set[str], found list"),
        ({"tags": {1}}, ".tags[]: expected str"),
        ({"pair": (1, None)}, ".pair[1]: expected int, found None"),
        ({"txet": "typo"}, ": Sale has no field 'txet'; expected 'text'?"),
    ],
)  # fmt: skip
def test_a_value_that_was_smuggled_past_validation_is_refused_with_its_path(
    fields: dict[str, Any], expected: str
) -> None:
    """Case S2: a misspelt field and a record that looks like another; also case S1, a naive time."""
    with pytest.raises(ConfigurationError) as caught:
        made().encode(envelope(), smuggled(**fields))
    assert str(caught.value).startswith(f"event jobs.Sale does not fit its schema: Sale{expected}")


@pytest.mark.parametrize("kind", [Order, Refund])
def test_of_records_that_look_alike_the_one_comes_back_that_was_written(kind: type[Order | Refund]) -> None:
    """Case S2."""
    read: Any = made().read(decode(made().encode(envelope(), Sale(either=kind(number="1"))), made().writer))
    assert type(read.either) is kind


def test_another_class_with_the_same_fields_is_refused() -> None:
    class Bigger(Sale, topic="jobs.bigger"):
        extra: int = 1

    with pytest.raises(ConfigurationError, match="expected exactly Sale, found its subclass Bigger"):
        made().encode(envelope(), Bigger())


def test_an_error_quotes_no_personal_data() -> None:
    class Joined(Event, topic="jobs.joined"):
        names: list[str] = personal()
        age: int = 0

    for wrong in ({"names": ["Ada Lovelace", 1815]}, {"names": "Ada Lovelace"}, {"names": ["Ada Lovelace \ud83d"]}):
        with pytest.raises(ConfigurationError, match=r"Joined\.names") as refused:
            contract(Joined, "jobs").encode(envelope(), Joined.model_construct(**wrong))
        assert "Ada" not in str(refused.value) and "1815" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="found str 'old'"):
        contract(Joined, "jobs").encode(envelope(), Joined.model_construct(**{"names": [], "age": "old"}))


def test_a_value_whose_own_words_raise_is_refused_all_the_same() -> None:
    class Sly:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(ConfigurationError, match=r"Sale\.text: expected str, found Sly \?"):
        made().encode(envelope(), smuggled(text=Sly()))


def test_models_nested_deeper_than_readers_can_follow_are_refused() -> None:
    def nested(levels: int) -> Sale:
        tree = None
        for _ in range(levels):
            tree = Tree(left=tree)
        return smuggled(tree=tree)

    written = made()
    deepest = nested(63)
    assert written.read(decode(written.encode(envelope(), deepest), written.writer)) == deepest
    for levels in (64, 5_000):
        with pytest.raises(ConfigurationError, match="models lie in one another more than 64 times"):
            written.encode(envelope(), nested(levels))


def test_what_is_kept_beside_the_fields_for_speed_is_no_field() -> None:
    sale = Sale(text="a")
    assert sale.shout == "A"
    assert made().read(decode(made().encode(envelope(), sale), made().writer)) == sale


def test_derived_texts_and_numbers_are_written_as_what_they_are() -> None:
    class Word(str):
        __slots__ = ()

    class Number(enum.IntEnum):
        ONE = 1

    sale = smuggled(text=Word("a"), number=Number.ONE, mixed=Level.LOW, level="low")
    assert made().read(decode(made().encode(envelope(), sale), made().writer)) == Sale(text="a", number=1, mixed="low")


def test_what_a_derived_class_says_of_itself_is_neither_believed_nor_the_end_of_a_worker() -> None:
    class Share(float):
        def __float__(self) -> float:
            return math.nan

    class Number(int):
        def __int__(self) -> int:
            return 5

    class Nowhere(tzinfo):
        def utcoffset(self, _at: datetime | None) -> timedelta:
            raise RuntimeError("no such place\nat all")

    sale = smuggled(share=Share(0.5), number=Number(7))
    assert made().read(decode(made().encode(envelope(), sale), made().writer)) == Sale(share=0.5, number=7)
    with pytest.raises(ConfigurationError, match=r"does not fit its schema: RuntimeError: no such place$"):
        made().encode(envelope(), smuggled(at=datetime(2026, 1, 2, tzinfo=Nowhere())))  # type: ignore[abstract]


def test_a_set_has_the_same_bytes_whatever_order_it_has() -> None:
    tags = {str(number) for number in range(100)}
    raw = envelope()
    assert made().encode(raw, smuggled(tags=tags)) == made().encode(
        raw, smuggled(tags=set(dict.fromkeys(sorted(tags))))
    )


PLAIN_LONG = fastavro.parse_schema("long")
#: Where a number takes one byte more, and what lies beside.
EDGES = [sign * ((1 << bits) + beside) for bits in range(63) for beside in (-1, 0, 1) for sign in (1, -1)]


@given(st.integers(-(2**63), 2**63 - 1), st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
@settings(max_examples=200)
def test_numbers_and_texts_lie_in_bytes_as_avro_says(number: int, word: str) -> None:
    for kind, value, ours in (("long", number, long(number)), ("string", word, text(word))):
        out = BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(kind), value)
        assert ours == out.getvalue()


def test_the_envelope_lies_in_bytes_as_avro_says() -> None:
    full = envelope() | {
        "scope_id": "x",
        "causation_id": "y",
        "part": 0,
        "parts": 7,
        "tenant": "é" * 5_000,
        "hop": 2**31 - 1,
    }
    for raw in (envelope(), full):
        out = BytesIO()
        fastavro.schemaless_writer(
            out, made().writer.parsed, raw | {"raw": b"", "price": b"\x64"}
        )  # else from defaults
        assert out.getvalue() == strict.envelope(raw) + made().writes(Sale())


def test_a_number_takes_as_few_bytes_as_avro_says() -> None:
    for number in (*EDGES, 2**63 - 1, -(2**63)):
        out = BytesIO()
        fastavro.schemaless_writer(out, PLAIN_LONG, number)
        assert long(number) == out.getvalue(), number
