"""A payload as jsonb: what Postgres cannot hold is replaced and reported; everything else stays as it is."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from farandole.projector.body import REPLACEMENT, clean, jsonb_text


def shown(payload: dict[str, Any]) -> tuple[Any, bool]:
    body, sanitised = jsonb_text(payload)
    return (None if body is None else json.loads(body)), sanitised


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\0b", f"a{REPLACEMENT}b"),
        ("cut \ud83d", f"cut {REPLACEMENT}"),
        (float("nan"), None),
        (float("inf"), None),
        (["x", {"deep": "\0"}], ["x", {"deep": REPLACEMENT}]),
        ({"k\0": 1}, {f"k{REPLACEMENT}": 1}),
    ],
)
def test_what_postgres_cannot_hold_is_replaced_and_reported(value: Any, expected: Any) -> None:
    """Cases P3 and P4."""
    assert shown({"field": value}) == ({"field": expected}, True)


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "\\u0000", "\\ud83d", "\N{GRINNING FACE}", "ünïcode", 1e308, None, True]
)
def test_what_only_looks_suspicious_stays(value: Any) -> None:
    assert shown({"field": value}) == ({"field": value}, False)


def test_what_avro_has_and_json_has_not_gets_a_readable_form() -> None:
    payload = {
        "bytes": b"\xff\0",
        "id": UUID(int=1),
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "price": Decimal("1.50"),
    }
    body, sanitised = shown(payload)
    assert body == {
        "bytes": "/wA=",
        "id": str(UUID(int=1)),
        "at": "2026-01-02T03:04:05+00:00",
        "day": "2026-01-02",
        "price": "1.50",
    }
    assert not sanitised


def test_nesting_beyond_any_limit_has_no_body() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    assert jsonb_text({"field": nested}) == (None, True)


def test_clean_text_is_left_alone() -> None:
    text = "nothing wrong with \N{SNOWMAN}"
    assert clean(text) is text
