"""The smallest instance of a JSON schema: an agent under test gets an answer that fits, without a script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


#: Bounds that structured output does not take: `anthropic.transform_schema` writes them at the end of the description.
_TOLD = re.compile(r"\{([^{}]*)\}$")
_BOUNDS = {
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "minItems",
    "maxLength",
}


def smallest(schema: Mapping[str, Any]) -> Any:
    """The same instance for the same schema: first enum values, required fields, empty arrays.

    Takes what pydantic and `anthropic.transform_schema` write, but for patterns. Raises ValueError when the schema has
    no finite instance or refers to what it does not define.

    >>> smallest({"type": "object", "properties": {"size": {"enum": ["S", "M"]}, "seats": {"type": "integer"}}})
    {'size': 'S', 'seats': 0}
    """
    return _instance(schema, schema, frozenset())


def _instance(schema: Mapping[str, Any], root: Mapping[str, Any], within: frozenset[str]) -> Any:
    if "$ref" in schema:
        return _referred(schema["$ref"], root, within)
    for fixed in ("const", "default"):
        if fixed in schema:
            return schema[fixed]
    if schema.get("enum"):
        return schema["enum"][0]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _first(schema[several], root, within)
    if "allOf" in schema:
        parts = [_instance(part, root, within) for part in schema["allOf"]]
        objects = all(isinstance(part, dict) for part in parts)
        return {name: value for part in parts for name, value in part.items()} if objects else parts[0]
    return _typed({**_told(schema), **schema}, root, within)


def _typed(schema: Mapping[str, Any], root: Mapping[str, Any], within: frozenset[str]) -> Any:
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {name: _instance(properties[name], root, within) for name in schema.get("required", properties)}
        case "array":
            return [_instance(schema["items"], root, within) for _ in range(int(schema.get("minItems", 0)))]
        case "string":
            return _FORMATS.get(schema.get("format", "")) or _text(schema)
        case "integer":
            return int(_number(schema))
        case "number":
            return _number(schema)
        case "boolean":
            return False
        case [first, *_]:
            return _typed({**schema, "type": first}, root, within)
        case _:
            return None


def _referred(reference: str, root: Mapping[str, Any], within: frozenset[str]) -> Any:
    if reference in within:
        raise ValueError(f"{reference} has no finite instance")
    found: Any = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        if name and (not isinstance(found, Mapping) or name not in found):
            raise ValueError(f"{reference} is not defined")
        found = found[name] if name else found
    return _instance(found, root, within | {reference})


def _first(variants: list[Mapping[str, Any]], root: Mapping[str, Any], within: frozenset[str]) -> Any:
    """Of the first that has a finite instance."""
    for variant in variants[:-1]:
        try:
            return _instance(variant, root, within)
        except ValueError:
            continue
    return _instance(variants[-1], root, within)


def _text(schema: Mapping[str, Any]) -> str:
    least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 1 << 30))
    return "text".ljust(least, "t")[:most]


def _number(schema: Mapping[str, Any]) -> Any:
    """The one that is nearest to 0, or 1 beyond a bound that is itself excluded; a whole multiple where one is asked for."""
    least = schema.get("minimum", schema["exclusiveMinimum"] + 1 if "exclusiveMinimum" in schema else None)
    most = schema.get("maximum", schema["exclusiveMaximum"] - 1 if "exclusiveMaximum" in schema else None)
    step = schema.get("multipleOf", 1)
    if least is not None and least > 0:
        return -(-least // step) * step if "multipleOf" in schema else least
    if most is not None and most < 0:
        return most // step * step if "multipleOf" in schema else most
    return 0


def _told(schema: Mapping[str, Any]) -> dict[str, float]:
    """Bounds in the description."""
    told = _TOLD.search(str(schema.get("description", "")))
    pairs = [part.partition(": ") for part in told[1].split(", ")] if told else []
    return {name: _figure(value) for name, _, value in pairs if name in _BOUNDS and _is_figure(value)}


def _is_figure(text: str) -> bool:
    return re.fullmatch(r"-?\d+(?:\.\d+)?", text) is not None


def _figure(text: str) -> float:
    return float(text) if "." in text else int(text)
