"""Functions that a model may call while it decides: described by their annotations, run here, their results sent back."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from farandole.errors import ConfigurationError
from farandole.models.values import sendable

_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)

#: Characters of a result that go back to the model.
_LONGEST = 20_000


class Tools:
    """A question's tools. Raises ConfigurationError for a function that says too little about itself."""

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        self._functions = {function.__name__: function for function in functions}
        self._inputs = {name: _input(function) for name, function in self._functions.items()}

    def __bool__(self) -> bool:
        return bool(self._functions)

    def described(self) -> list[dict[str, Any]]:
        """For the API."""
        return [
            {
                "name": name,
                "description": inspect.getdoc(function),
                "input_schema": self._inputs[name].model_json_schema(),
            }
            for name, function in self._functions.items()
        ]

    async def results(self, content: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What the calls in a reply return; a tool's ValueError goes back to the model, in its words."""
        return [await self._result(block) for block in content if block.get("type") == "tool_use"]

    async def _result(self, block: Mapping[str, Any]) -> dict[str, Any]:
        name, answer = str(block.get("name")), {"type": "tool_result", "tool_use_id": block.get("id")}
        if name not in self._functions:
            return {**answer, "content": f"there is no tool {name!r}", "is_error": True}
        try:
            given = self._inputs[name].model_validate_json(json.dumps(block.get("input")))
        except ValidationError as error:
            return {**answer, "content": str(error)[:_LONGEST], "is_error": True}
        try:
            result = self._functions[name](**{field: getattr(given, field) for field in type(given).model_fields})
            if inspect.isawaitable(result):
                result = await result
        except ValueError as error:  # of what was given; every other error is the handler's
            return {**answer, "content": sendable(str(error))[:_LONGEST], "is_error": True}
        text = result if isinstance(result, str) else json.dumps(_ANYTHING.dump_python(result, mode="json"))
        return {**answer, "content": sendable(text)[:_LONGEST]}


def _input(function: Callable[..., Any]) -> type[BaseModel]:
    name = function.__name__
    if not inspect.getdoc(function):
        raise ConfigurationError(f"tool {name}: no docstring; it tells the model what the tool is for")
    hints = get_type_hints(function)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in hints:
            raise ConfigurationError(f"tool {name}: no annotation for {parameter.name!r}")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
