"""What a step recorded in one version of a program is replayed in another, which may be the older one."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, model_validator

from farandole import Event
from farandole.steps import results


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Weight(Strict):
    grams: int


class NewWeight(Strict):
    grams: int
    unit: str = "g"


class Parcel(Event, topic="jobs.parcels"):
    weights: list[Weight]


class NewParcel(Event, topic="jobs.parcels"):
    weights: list[NewWeight]
    note: str | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    grams: int


OLD = Parcel(weights=[Weight(grams=1)])
NEW = NewParcel(weights=[NewWeight(grams=1, unit="kg"), NewWeight(grams=2)], note="fragile")


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (OLD, NewParcel(weights=[NewWeight(grams=1)])),
        (NEW, Parcel(weights=[Weight(grams=1), Weight(grams=2)])),
        (NewWeight(grams=3, unit="kg"), Weight(grams=3)),
        (NewWeight(grams=3, unit="kg"), Open(grams=3, unit="kg")),
    ],
    ids=["a new field has its default", "an unknown one is left out", "at the top", "an open class keeps it"],
)
def test_a_result_crosses_a_deploy_both_ways(recorded: BaseModel, expected: BaseModel) -> None:
    text = results.encode(type(recorded), recorded, "there")
    assert results.decode(type(expected), text, "here") == expected


class Letter(Strict):
    kind: Literal["letter"] = "letter"
    pages: int

    @model_validator(mode="after")
    def _even(self) -> Letter:
        if self.pages % 2:
            raise ValueError("pages have two sides")
        return self


@pytest.mark.parametrize(
    ("kind", "recorded", "error"),
    [
        (Letter, {"kind": "letter", "grams": 1}, "pages"),
        (Letter, {"kind": "letter", "pages": 1.5, "grams": 1}, "pages"),
        (Letter, {"kind": "letter", "pages": 3, "grams": 1}, "two sides"),
        (Letter | Weight, {"kind": "letter", "grams": 1}, "grams|pages"),
        (int, "word", "int"),
    ],
)
def test_a_result_of_another_shape_is_not_guessed_at(kind: Any, recorded: Any, error: str) -> None:
    text = results.encode(Any, recorded, "there")
    with pytest.raises(results.NotKept, match="here: the recorded result does not fit its type any more") as failure:
        results.decode(kind, text, "here")
    assert failure.value.cause == "result"
