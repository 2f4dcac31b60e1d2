"""The type of a decision: its JSON schema for the model, and the one object of that type in a text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
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

#: Levels of nesting; no type needs as many.
_DEEPEST = 64

#: How an object of an answer begins, in contrast to a brace of prose.
_BEGUN = re.compile(r'\{\s*(?:"(?:[^"\\]|\\.)*+(?:"\s*(?::|\Z)|\\?\Z)|\Z)', re.DOTALL)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


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
            if isinstance(candidate, _Refused):
                wrong = str(candidate)
                continue
            if isinstance(candidate, ValueError):  # what was cut may have been another answer
                raise InvalidOutput(str(candidate))
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
        return self.adapter.validate_json(text, strict=True, extra="forbid")


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


def _objects(text: str) -> Iterator[dict[str, Any] | ValueError]:
    """The outermost JSON objects in a text, whatever stands around them; an error in place of one that is refused.

    What stands inside an object that is refused or cut is part of it, and no answer by itself.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refused, parse_float=_finite)
    at = text.find("{")
    for _ in range(_PLACES):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
            _clean(value)
            yield value
        except (ValueError, RecursionError) as error:
            begun = _BEGUN.match(text, at)
            end = _end(text, at) if begun else at + 1  # braces of prose, such as {name}, are passed over
            if begun:
                yield error if isinstance(error, _Refused) else ValueError("the JSON object is cut, or is none")
        at = text.find("{", end)


def _end(text: str, at: int) -> int:
    """Where the object at `at` ends; the text's end when it is cut."""
    try:
        return json.JSONDecoder().raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return len(text)


class _Refused(ValueError):
    """JSON that is no answer, for a reason the model can be told."""


def _clean(value: Any, depth: int = 0) -> None:
    """Refuse what neither topics nor the database take."""
    if depth > _DEEPEST:
        raise _Refused(f"objects are nested deeper than {_DEEPEST} levels")
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            raise _Refused("a text has a NUL character, or half a surrogate pair")
    elif isinstance(value, dict | list):
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            _clean(part, depth + 1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _Refused("a key twice in one object")
    return made


def _refused(constant: str) -> Any:
    raise _Refused(f"{constant} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Refused(f"{text[:40]} is too large")
    return number


def _first_errors(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    details = error.errors(include_url=False, include_input=False)[:5]
    return "; ".join(f"{'.'.join(map(str, detail['loc'])) or 'the object'}: {detail['msg']}" for detail in details)
