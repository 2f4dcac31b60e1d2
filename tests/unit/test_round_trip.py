"""Any valid instance of any event class comes back equal; also of classes that are drawn by chance."""

from __future__ import annotations

import enum
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import count
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model

from farandole import Event, Unknown
from farandole.contracts.codec import Contract, contract, decode, json_form, writer
from farandole.contracts.deriving import derive
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS
from farandole.flow import RUNTIME_EVENTS
from farandole.projector.body import jsonb_text
from schemas import jobs
from tests.strategies import instances
from tests.unit.test_contracts import Everything, envelope
from tests.unit.test_strict_encoding import Sale

EVENTS: tuple[type[Event], ...] = (
    jobs.Submitted, jobs.Classified, jobs.Enriched, jobs.Acted, jobs.Done, *RUNTIME_EVENTS, Everything, Sale,
)  # fmt: skip


def comes_back(made: Contract, event: Event) -> None:
    """Equal, by the same schema and by one of the same fields that another process has written; and is told in JSON."""
    value = made.encode(envelope(), event)
    fields = decode(value, made.writer)
    assert made.read(fields) == event
    assert made.read(decode(value, writer(made.writer.schema), made.writer)) == event
    lost: list[Any] = []
    payload = {name: found for name, found in fields.items() if name not in ENVELOPE_FIELDS}
    body, _ = jsonb_text(json_form(made.writer)(payload, lost))
    assert body
    assert not lost


@pytest.mark.parametrize("kind", EVENTS)
def test_any_valid_instance_comes_back_equal(kind: type[Event]) -> None:
    @given(instances(kind))
    @settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
    def check(event: Event) -> None:
        comes_back(contract(kind, "jobs"), event)

    check()


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Cash(Strict):
    cents: int


class Coin(Strict):
    cents: int


class Level(enum.StrEnum):
    LOW = "low"
    HIGH = "high"
    __unknown__ = "high"


class Base(Event, topic="jobs.base"):
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(topic="jobs.drawn", **kwargs)


#: Kinds that a set may hold, too.
PLAIN = st.sampled_from([
    str, int, float, bool, bytes, UUID, date, time, AwareDatetime, timedelta, Level, Cash,
    Annotated[Decimal, Field(max_digits=9, decimal_places=3)],
    Annotated[int, Field(ge=-5, le=5)],
    Cash | Coin, int | str, bool | int | str, AwareDatetime | str,
])  # fmt: skip

NUMBERS = count()


def containers(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    makers: list[Any] = [
        list.__class_getitem__, lambda kind: dict.__class_getitem__((str, kind)),
        lambda kind: tuple.__class_getitem__((kind, ...)), lambda kind: kind | None,
    ]  # fmt: skip
    many = [inner.map(make) for make in makers] + [PLAIN.map(make.__class_getitem__) for make in (set, frozenset)]
    return st.one_of(*many, st.lists(inner, min_size=1, max_size=3).map(model))


def model(kinds: list[Any]) -> type[BaseModel]:
    fields: Any = {f"field_{at}": (kind, ...) for at, kind in enumerate(kinds)}
    return create_model(f"Model{next(NUMBERS)}", __base__=Strict, **fields)


KINDS = st.recursive(PLAIN, containers, max_leaves=4)


@st.composite
def drawn(draw: st.DrawFn) -> Event:
    """An instance of an event class that did not exist before."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=3)) + draw(st.lists(PLAIN, min_size=4, max_size=6))
    fields: Any = {f"f{at}": (kind, ...) for at, kind in enumerate(kinds)}
    words = draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
    fields["word"] = (Annotated[Literal[tuple(words)], Unknown(words[-1])], words[0])
    made: type[Event] = create_model("Drawn", __base__=Base, **fields)
    return draw(instances(made))


@given(drawn())
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_an_event_of_any_class_comes_back_equal(event: Event) -> None:
    made = contract.__wrapped__(type(event), "jobs")  # not kept: there are many of these
    assert derive(type(event), "jobs") == made.writer.schema
    comes_back(made, event)
