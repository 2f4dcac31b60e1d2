"""Messages and errors as the API writes them, whole or as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from farandole.testing.messages.behaviours import Answer, Failure
from farandole.testing.messages.cache import tokens
from farandole.testing.messages.instances import smallest

_REFUSED = {"type": "refusal", "category": None, "explanation": None}


def message(answer: Answer, body: Mapping[str, Any], counted: Mapping[str, int]) -> dict[str, Any]:
    """The whole message. `counted`: the input side of its usage."""
    blocks = list(_blocks(answer, body))
    calls = any(block["type"] == "tool_use" for block in blocks)
    stopped = "tool_use" if calls and answer.stop_reason == "end_turn" else answer.stop_reason
    return {
        "id": f"msg_{uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": stopped,
        "stop_sequence": None,
        "stop_details": _REFUSED if stopped == "refusal" else None,
        "usage": {**counted, "output_tokens": tokens(blocks) if blocks else 0, **answer.usage},
    }


def _blocks(answer: Answer, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if answer.thinking is not None:
        yield {"type": "thinking", "thinking": answer.thinking, "signature": "c2ln"}
    if answer.tool_use:
        name, given = answer.tool_use
        if answer.content is not None:
            yield {"type": "text", "text": _text(answer.content)}
        yield {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": name, "input": dict(given)}
        return
    content = answer.content
    if content is None and (forced := _forced(body)):
        yield {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", **forced}
        return
    if content is None:
        schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
        content = smallest(schema) if schema else "OK"
    if content != "":  # a refusal may say nothing at all
        yield {"type": "text", "text": _text(content)}
    for text in answer.more:
        yield {"type": "text", "text": text}


def _forced(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The call of a tool where the request leaves no choice: of the one it names, or of the first."""
    choice, tools = body.get("tool_choice") or {}, body.get("tools") or []
    if choice.get("type") not in ("tool", "any"):
        return None
    wanted = [tool for tool in tools if choice.get("name") in (None, tool.get("name"))]
    return {"name": wanted[0]["name"], "input": smallest(wanted[0].get("input_schema", {}))} if wanted else None


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def error(failure: Failure, request_id: str) -> bytes:
    """The body of an error."""
    told = {"type": failure.type, "message": failure.message}
    return json.dumps({"type": "error", "error": told, "request_id": request_id}).encode()


def events(whole: Mapping[str, Any]) -> Iterator[bytes]:
    """A message as the events of a stream."""
    usage = dict(whole["usage"])
    first = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield event("message_start", {"message": first})
    for index, block in enumerate(whole["content"]):
        begun, deltas = _deltas(block)
        yield event("content_block_start", {"index": index, "content_block": begun})
        if index == 0:
            yield event("ping", {})
        for delta in deltas:
            yield event("content_block_delta", {"index": index, "delta": delta})
        yield event("content_block_stop", {"index": index})
    ended = {name: whole[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    yield event("message_delta", {"delta": ended, "usage": usage})
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
