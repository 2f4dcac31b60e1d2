"""A record that one version of a union wrote is the same model to every other version that knows it."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, create_model

from farandole import Event, ids
from farandole.contracts.codec import contract, decode
from farandole.envelope import Emitter, begin


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Cash(Strict):
    amount: str = "1"


class Card(Strict):
    """Looks like `Cash`: only its name tells it apart."""

    amount: str = "2"


class Tree(Strict):
    paid: Card | Cash
    below: list[Tree] = []
    named: dict[str, Tree | Card] = {}


class Bush(Strict):
    paid: Cash
    below: list[Bush] = []
    named: dict[str, Bush] = {}


Bush.__name__ = "Tree"

#: What one field may be, as versions of a class have it.
ALONE, MAYBE = [Cash], [Cash | None]
SEVERAL = [Cash | Card, Card | Cash, Card | Cash | None]
LISTS = [list[Cash], list[Card | Cash], list[Card | Cash | None]]


def paid(kind: Any) -> Any:
    return create_model("Paid", __base__=Event, __cls_kwargs__={"topic": ".paid"}, by=(kind, ...))


def read(event: Event, reader: Any) -> Any:
    written, wanted = contract(type(event), "orders"), contract(reader, "orders")
    value = written.encode(begin(ids.new_trace_id(), Emitter("client"), "orders.Paid"), event)
    return wanted.read(decode(value, written.writer, wanted.writer))


@pytest.mark.parametrize("older, newer", [*permutations(ALONE + MAYBE + SEVERAL, 2)], ids=str)
def test_models_that_look_alike_stay_apart_between_versions_of_a_union(older: Any, newer: Any) -> None:
    assert read(paid(older)(by=Cash()), paid(newer)).by == Cash()


@pytest.mark.parametrize("older, newer", [*permutations(LISTS, 2)], ids=str)
def test_so_do_those_in_lists(older: Any, newer: Any) -> None:
    assert read(paid(older)(by=[Cash(amount="7")]), paid(newer)).by == [Cash(amount="7")]


def test_so_do_those_in_models_that_hold_themselves() -> None:
    bush = Bush(paid=Cash(), below=[Bush(paid=Cash(amount="7"))], named={"x": Bush(paid=Cash())})
    tree = Tree(paid=Cash(), below=[Tree(paid=Cash(amount="7"))], named={"x": Tree(paid=Cash())})

    assert read(paid(Bush)(by=bush), paid(Tree)).by == tree
    assert read(paid(Tree)(by=tree), paid(Bush)).by == bush


def test_defaults_are_filled_in_each_time_as_if_it_were_the_first() -> None:
    reader = create_model(
        "Paid", __base__=Event, __cls_kwargs__={"topic": ".paid"}, by=(Cash, ...), more=(Card | Cash, Card()),
        tree=(Tree, Tree(paid=Card(), below=[Tree(paid=Card())])),
    )  # fmt: skip

    for _ in range(2):
        found = read(paid(Cash)(by=Cash()), reader)
        assert (found.more, found.tree) == (Card(), Tree(paid=Card(), below=[Tree(paid=Card())]))
