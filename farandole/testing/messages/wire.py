"""Messages and errors as the API writes them, whole or as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from farandole.testing.messages.behaviours import Answer, Failure
from farandole.testing.messages.instances import smallest


def message(answer: Answer, body: Mapping[str, Any], cached: bool | None) -> dict[str, Any]:
    """The whole message. `cached`: whether the request's prefix is in the cache already; None: it is not to be."""
    blocks = list(_blocks(answer, body))
    return {
        "id": f"msg_{uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": "tool_use" if answer.tool_use else answer.stop_reason,
        "stop_sequence": None,
        "usage": {**_usage(body, blocks, cached), **answer.usage},
    }


def _blocks(answer: Answer, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if answer.thinking is not None:
        yield {"type": "thinking", "thinking": answer.thinking, "signature": "c2ln"}
    if answer.tool_use:
        name, given = answer.tool_use
        yield {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": name, "input": dict(given)}
        return
    content = answer.content
    if content is None:
        schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
        content = smallest(schema) if schema else "OK"
    yield {"type": "text", "text": content if isinstance(content, str) else json.dumps(content)}
    for text in answer.more:
        yield {"type": "text", "text": text}


def _usage(body: Mapping[str, Any], blocks: list[dict[str, Any]], cached: bool | None) -> dict[str, int]:
    """Four bytes a token; what is marked for the cache is counted there."""
    prefix = tokens(body.get("system")) if cached is not None else 0
    return {
        "input_tokens": tokens(body) - prefix,
        "output_tokens": tokens(blocks),
        "cache_read_input_tokens": prefix if cached else 0,
        "cache_creation_input_tokens": prefix if cached is False else 0,
    }


def tokens(value: Any) -> int:
    """Of a part of a request, about."""
    return -(-len(json.dumps(value).encode()) // 4)


def error(failure: Failure, request_id: str) -> bytes:
    """The body of an error."""
    told = {"type": failure.type, "message": failure.message}
    return json.dumps({"type": "error", "error": told, "request_id": request_id}).encode()


def events(whole: Mapping[str, Any]) -> Iterator[bytes]:
    """A message as the events of a stream."""
    usage = dict(whole["usage"])
    first = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield event("message_start", {"message": first})
    yield event("ping", {})
    for index, block in enumerate(whole["content"]):
        begun, deltas = _deltas(block)
        yield event("content_block_start", {"index": index, "content_block": begun})
        for delta in deltas:
            yield event("content_block_delta", {"index": index, "delta": delta})
        yield event("content_block_stop", {"index": index})
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", {"delta": ended, "usage": {"output_tokens": usage["output_tokens"]}})
    yield event("message_stop", {})


def event(name: str, data: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def _deltas(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}, [
                {"type": "text_delta", "text": part} for part in _parts(block["text"])
            ]
        case "thinking":
            said = [{"type": "thinking_delta", "thinking": part} for part in _parts(block["thinking"])]
            return {"type": "thinking", "thinking": "", "signature": ""}, [
                *said,
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case _:
            parts = _parts(json.dumps(block["input"]))
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]


def _parts(text: str, size: int = 12) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]
