"""What the API says to a request that it does not take."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from farandole.testing.messages.behaviours import Failure, bad_request, request_too_large
from farandole.testing.messages.connection import Request

_PROMPT = {"messages", "model", "cache_control", "output_config", "system", "thinking", "tool_choice", "tools", "speed"}
_SAMPLING = {"temperature", "top_k", "top_p", "stop_sequences"}
_COUNTED = _PROMPT | {"context_management", "mcp_servers"}
_FIELDS = _PROMPT | _SAMPLING | {"max_tokens", "stream", "metadata", "service_tier", "container", "inference_geo"}
_FIELDS |= {"diagnostics"}

#: Taken only with a header anthropic-beta.
_BETA = {"billing_policy", "compaction", "context_management", "fallback_credit_token", "fallbacks", "mcp_servers"}
_BETA |= {"thread", "output_format"}

#: What a schema for structured output may not have, by type
#: (https://platform.claude.com/docs/en/build-with-claude/structured-outputs).
_UNSUPPORTED = {
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "string": {"minLength", "maxLength"},
    "array": {"maxItems", "uniqueItems"},
}


def checked(
    request: Request, *, counting: bool, keys: Collection[str] | None, models: Collection[str] | None
) -> tuple[dict[str, Any], Failure | None]:
    """The request's body, as far as it is one, and what is wrong. None for `keys` and `models`: any key, any claude-…"""
    if request.raw is None:
        return {}, request_too_large()
    try:
        body = json.loads(request.raw)
    except ValueError:
        return {}, _key(request, keys) or bad_request("The request body is not valid JSON")
    if not isinstance(body, dict):
        return {}, _key(request, keys) or bad_request("Input should be a valid dictionary")
    return body, _key(request, keys) or _form(request, body, counting) or _model(body["model"], models)


def _key(request: Request, keys: Collection[str] | None) -> Failure | None:
    key = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
    if not key:
        return Failure(401, "authentication_error", "x-api-key header is required")
    if keys is not None and key not in keys:
        return Failure(401, "authentication_error", "invalid x-api-key")
    return None


def _form(request: Request, body: Mapping[str, Any], counting: bool) -> Failure | None:
    if "anthropic-version" not in request.headers:
        return bad_request("anthropic-version: header is required")
    wrong = next(_wrong(body, counting, "anthropic-beta" in request.headers), None)
    return bad_request(wrong) if wrong else None


def _model(model: str, models: Collection[str] | None) -> Failure | None:
    known = model.startswith("claude-") if models is None else model in models
    return None if known else Failure(404, "not_found_error", f"model: {model}")


def _wrong(body: Mapping[str, Any], counting: bool, beta: bool) -> Iterator[str]:
    needed = {"model": str, "messages": list} | ({} if counting else {"max_tokens": int})
    for name, kind in needed.items():
        if name not in body:
            yield f"{name}: Field required"
        elif not isinstance(body[name], kind) or isinstance(body[name], bool):
            yield f"{name}: Input should be a valid {_KINDS[kind]}"
    for name in body.keys() - (_COUNTED if counting else _FIELDS) - (_BETA if beta else set()):
        yield f"{name}: Extra inputs are not permitted"
    if not counting and body["max_tokens"] < 1:
        yield "max_tokens: must be greater than or equal to 1"
    if not isinstance(body.get("stream") or False, bool):
        yield "stream: Input should be a valid boolean"
    yield from _messages(body["messages"])
    yield from _output((body.get("output_config") or {}).get("format"))


_KINDS = {str: "string", list: "list", int: "integer"}


def _messages(messages: list[Any]) -> Iterator[str]:
    if not messages:
        yield "messages: at least one message is required"
    for at, message in enumerate(messages):
        if not isinstance(message, dict):
            yield f"messages.{at}: Input should be a valid dictionary"
            continue
        for name in ("role", "content"):
            if name not in message:
                yield f"messages.{at}.{name}: Field required"
        for name in message.keys() - {"role", "content"}:
            yield f"messages.{at}.{name}: Extra inputs are not permitted"
        if message["role"] not in ("user", "assistant", "system"):
            yield f"messages.{at}.role: Input should be 'user' or 'assistant'"
        if not message["content"] and (message["role"] != "assistant" or at < len(messages) - 1):
            yield f"messages.{at}: user messages must have non-empty content"


def _output(form: Any) -> Iterator[str]:
    if form is None:
        return
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        yield "output_config.format.type: Input should be 'json_schema'"
    elif not isinstance(form.get("schema"), dict):
        yield "output_config.format.schema: Field required"
    else:
        yield from (f"output_config.format.schema: {wrong}" for wrong in _schema(form["schema"]))


def _schema(schema: Any) -> Iterator[str]:
    """What structured output does not support, anywhere in a schema."""
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if kind == "object" and schema.get("additionalProperties") is not False:
        yield "For 'object' type, 'additionalProperties' must be explicitly set to false"
    if isinstance(kind, str) and (found := sorted(_UNSUPPORTED.get(kind, set()) & schema.keys())):
        yield f"For '{kind}' type, properties {', '.join(found)} are not supported"
    if kind == "array" and schema.get("minItems", 0) > 1:
        yield f"For 'array' type, 'minItems' values other than 0 or 1 are not supported (got: {schema['minItems']})"
    for part in (*schema.get("$defs", {}).values(), *schema.get("properties", {}).values(), schema.get("items")):
        yield from _schema(part)
    for part in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        yield from _schema(part)
