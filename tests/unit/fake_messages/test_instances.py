"""Objects that fit a schema."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import anthropic
import pytest
from pydantic import BaseModel, Field

from farandole.testing.messages.instances import smallest


class Colour(Enum):
    RED = "red"


class Leaf(BaseModel):
    kind: Literal["leaf"]
    address: str = Field(min_length=6)


class Tree(BaseModel):
    """One of everything."""

    colour: Colour
    leaf: Leaf
    left: Tree | None
    choice: Leaf | Colour
    count: int = Field(ge=2, le=9)
    share: float = Field(gt=0)
    below: int = Field(lt=-3)
    even: int = Field(ge=3, multiple_of=2)
    names: list[str] = Field(min_length=2)
    table: list[Leaf]
    id: UUID
    flag: bool
    note: str = ""


@pytest.mark.parametrize("way", [anthropic.transform_schema, lambda model: model.model_json_schema()])
def test_the_smallest_instance_fits_what_pydantic_says(way: Any) -> None:
    schema = way(Tree)
    found = smallest(schema)
    Tree.model_validate(found)
    assert found == smallest(json.loads(json.dumps(schema)))
    assert found["colour"] == "red"


def test_a_schema_without_a_finite_instance_is_told() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}}}
    with pytest.raises(ValueError, match="no finite instance"):
        smallest(schema)
