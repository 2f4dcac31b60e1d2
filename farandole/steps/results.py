"""Results of steps as JSON, typed: what is recorded decodes to what the handler is given, the first time as well."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from farandole.errors import ConfigurationError, Poison

#: Bytes of a result: it is state of a handling, not a store for documents.
LARGEST = 64 * 1024


class NotKept(Poison):
    """The step has run, and its result cannot be kept: the event is dead-lettered, and the step is not run again."""

    def __init__(self, message: str) -> None:
        super().__init__("result", message)


def result_type(function: Callable[..., Any], where: str) -> Any:
    """What `function` says it returns; Any where it says nothing. Raises ConfigurationError for what cannot be kept."""
    try:
        found = get_type_hints(inspect.unwrap(function)).get("return", Any)
    except (NameError, TypeError, AttributeError):  # a callable without annotations of its own
        return Any
    adapter(found, where)
    return found


def adapter(kind: Any, where: str) -> TypeAdapter[Any]:
    """Reads and writes results of type `kind`."""
    try:
        return _adapter(kind)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        name = getattr(kind, "__name__", kind)
        raise ConfigurationError(
            f"{where}: a result of type {name} cannot be kept; expected a pydantic model, a dataclass or plain values"
        ) from error


@lru_cache(maxsize=1000)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def encode(kind: Any, value: Any, where: str) -> str:
    """`value` as JSON text. Raises NotKept, saying why, for what would not come back as it was."""
    try:
        made = adapter(kind, where)
        text = json.dumps(made.dump_python(value, mode="json", warnings="error"), ensure_ascii=False, allow_nan=False)
        if made.validate_json(text) != value:
            raise ValueError("it reads back as another value; annotate what the function returns")
        size = len(text.encode())
    except Exception as error:
        raise NotKept(
            f"{where}: the result of type {type(value).__name__} cannot be kept: {_first_line(error)}"
        ) from error
    if size > LARGEST:
        raise NotKept(f"{where}: the result has {size:,} bytes; at most {LARGEST:,} are kept")
    return text


def decode(kind: Any, text: str, where: str) -> Any:
    """What `encode` recorded, in this version of the program or another: fields that the type lacks are left out, as those
    of a record are. Raises NotKept where the type has changed in another way since."""
    made = adapter(kind, where)
    try:
        try:
            return made.validate_json(text)
        except ValidationError as error:
            if any(detail["type"] != "extra_forbidden" for detail in error.errors()):
                raise
            return made.validate_json(text, extra="ignore")
    except ValidationError as error:
        raise NotKept(f"{where}: the recorded result does not fit its type any more: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return " ".join(line.strip() for line in lines[:3])
