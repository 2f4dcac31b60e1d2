"""The type of a decision: its JSON schema for the model, and the one object of that type in a text."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, TypeAdapter, ValidationError

from farandole.errors import ConfigurationError
from farandole.models.errors import InvalidOutput

T = TypeVar("T")

#: What wraps a decision that is no object by itself: an API's schema has an object at its root.
_WRAP = "answer"

#: Places in a text at which an object is looked for; more of them are no reply.
_PLACES = 1_000


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """What an answer is to look like."""

    kind: Any
    adapter: TypeAdapter[Any]
    schema: dict[str, Any]
    wrapped: bool

    def read(self, text: str) -> T:
        """The one object in `text` that fits. Raises InvalidOutput, saying what is wrong, for none or several."""
        found: list[Any] = []
        wrong = "no JSON object in the reply"
        for candidate in _objects(text):
            try:
                value = self._validated(candidate)
            except (ValidationError, ValueError) as error:
                wrong = _first_errors(error)
                continue
            if value not in found:
                found.append(value)
        if not found:
            raise InvalidOutput(wrong)
        if len(found) > 1:
            raise InvalidOutput(f"the reply has {len(found)} different objects that fit; expected one")
        return found[0]  # type: ignore[no-any-return]

    def _validated(self, candidate: dict[str, Any]) -> Any:
        if self.wrapped:
            if set(candidate) != {_WRAP}:
                raise ValueError(f"expected an object with the one key {_WRAP!r}")
            candidate = candidate[_WRAP]
        text = json.dumps(candidate, ensure_ascii=False, allow_nan=False)
        if "\\u0000" in text:
            raise ValueError("a text has a NUL character")
        return self.adapter.validate_json(text.encode(), strict=True)  # a lone surrogate is a ValueError here


@lru_cache(maxsize=500)
def shape_of(kind: Any) -> Shape[Any]:
    """The shape of a type: a pydantic model, a dataclass, an enum, a Literal or a plain value."""
    name = getattr(kind, "__name__", str(kind))
    try:
        adapter = TypeAdapter(kind)
        schema = adapter.json_schema()
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema) as error:
        raise ConfigurationError(f"ask({name}): a model cannot answer with this type: {error}") from error
    root = schema
    while "$ref" in root:
        root = schema["$defs"][root["$ref"].rsplit("/", 1)[1]]
    if root.get("type") == "object":
        return Shape(kind, adapter, schema, wrapped=False)
    definitions = schema.pop("$defs", None)
    whole: dict[str, Any] = {
        "type": "object",
        "properties": {_WRAP: schema},
        "required": [_WRAP],
        "additionalProperties": False,
    }
    if definitions:
        whole["$defs"] = definitions
    return Shape(kind, adapter, whole, wrapped=True)


def _objects(text: str) -> list[dict[str, Any]]:
    """The outermost JSON objects in a text, whatever stands around them."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refused, parse_float=_finite)
    found: list[dict[str, Any]] = []
    at, places = text.find("{"), 0
    while at >= 0 and places < _PLACES:
        places += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found.append(value)
        at = text.find("{", end)
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key twice in one object")
    return made


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


def _first_errors(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    details = error.errors(include_url=False, include_input=False)[:5]
    return "; ".join(f"{'.'.join(map(str, detail['loc'])) or 'the object'}: {detail['msg']}" for detail in details)
