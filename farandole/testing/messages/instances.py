"""The smallest instance of a JSON schema: an agent under test gets an answer that fits, without a script."""

from __future__ import annotations

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


def smallest(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """The same instance for the same schema. Takes what pydantic writes: $ref, enum, const, anyOf, objects, arrays."""
    root = root or schema
    if "$ref" in schema:
        return smallest(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    for fixed in ("const", "default"):
        if fixed in schema:
            return schema[fixed]
    if schema.get("enum"):
        return schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return smallest(schema[several][0], root)
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {name: smallest(properties[name], root) for name in schema.get("required", properties)}
        case "array":
            return [smallest(schema["items"], root) for _ in range(schema.get("minItems", 0))]
        case "string":
            return _FORMATS.get(schema.get("format", ""), "text"[: schema.get("maxLength", 4)])
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case _:
            return None
