"""One object out of a model's text: found wherever it stands, and never where there is none."""

import contextlib
import json
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from farandole.models.errors import InvalidOutput
from farandole.models.shape import shape_of


class Part(BaseModel):
    note: str = ""


class Verdict(BaseModel):
    label: Literal["refund", "other"]
    score: float
    parts: list[Part] = []


class Colour(Enum):
    RED = "red"


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
VERDICTS = st.builds(
    Verdict,
    label=st.sampled_from(["refund", "other"]),
    score=st.floats(allow_nan=False, allow_infinity=False),
    parts=st.lists(st.builds(Part, note=TEXT), max_size=3),
)
PROSE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}\0"), max_size=30)


def read(text: str, kind: Any = Verdict) -> Any:
    return shape_of(kind).read(text)


@given(VERDICTS, PROSE, PROSE, st.sampled_from(["{}", "```json\n{}\n```", "see {{name}}: {}", "{0} and again {0}"]))
def test_an_object_is_found_in_any_prose(verdict: Verdict, before: str, after: str, frame: str) -> None:
    assert read(before + frame.format(verdict.model_dump_json()) + after) == verdict


@given(VERDICTS, st.data(), PROSE)
def test_a_cut_object_is_never_an_answer(verdict: Verdict, data: st.DataObject, before: str) -> None:
    """Case M4, for a reply that was cut and does not say so."""
    whole = verdict.model_dump_json()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for kind in (Verdict, Part):
        with pytest.raises(InvalidOutput):
            read(before + cut, kind)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000])
def test_what_is_no_number_is_refused(number: str) -> None:
    """Case P4."""
    with pytest.raises(InvalidOutput):
        read(f'{{"label": "refund", "score": {number}}}')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no object",
        '[{"label": "refund", "score": 1.0}, {"label": "oth',
        "[" * 100_000,
        "{" * 100_000,
        '{"parts":' * 5_000,
        '{"a":' * 900 + "1" + "}" * 900,
        '{"label": "refund", "label": "other", "score": 1.0}',
        '{"label": "refund", "score": "1"}',
        '{"label": "refund", "score": 1.0, "more": 1}',
        '{"label": "refund", "score": 1.0} {"label": "other", "score": 1.0}',
        '{"label": "refund", "score": 1.0, "parts": [{"note": "\\u0000"}]}',
        '{"label": "refund", "score": 1.0, "parts": [{"note": "\\ud800"}]}',
    ],
)
def test_what_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(InvalidOutput):
        read(text)


def test_a_part_of_a_refused_object_is_no_answer() -> None:
    with pytest.raises(InvalidOutput, match="NaN"):
        read('{"score": NaN, "parts": [{"note": "mine"}]}', Part)


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    assert read(json.dumps({"note": "\\u0000"}), Part) == Part(note="\\u0000")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [(Colour, "red", Colour.RED), (Literal["a", "b"], "b", "b"), (int, 3, 3), (list[str], ["x"], ["x"])],
)
def test_what_is_no_object_is_wrapped_in_one(kind: Any, value: Any, expected: Any) -> None:
    assert read(json.dumps({"answer": value}), kind) == expected


@given(st.text())
def test_any_text_is_an_answer_or_an_invalid_one(text: str) -> None:
    with contextlib.suppress(InvalidOutput):
        read(text, Part)
