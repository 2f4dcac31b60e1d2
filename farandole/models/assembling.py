"""A message from the server-sent events of a stream: as it came, and never called whole before its end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from farandole.models.values import Heard, Reply, Usage, sendable


class Broken(ValueError):
    """The stream holds something that is no event of the Messages API, or has no end."""


class ErrorEvent(Exception):
    """The stream ended with an error; `body` is it, as the API words errors."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(str(body)[:300])
        self.body = body


class Assembly:
    """Bytes in, one message out.

    >>> assembly = Assembly()
    >>> assembly.feed(b'data: {"type": "message_start", "message": {"type": "message"}}' + bytes([10, 10]))
    >>> assembly.ended
    False
    """

    def __init__(self) -> None:
        self.ended = False  #: the event `message_stop` was there: nothing that follows belongs to the message
        self._line = bytearray()
        self._data: list[bytes] = []
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, list[str]] = {}

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes. Raises Broken, and ErrorEvent for the event of that name."""
        try:
            for data in self._events(chunk):
                self._take(json.loads(data))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise Broken(f"no event of the Messages API: {error}"[:300]) from error

    def message(self) -> dict[str, Any]:
        """The message. Raises Broken before its end."""
        if not self.ended:
            raise Broken("the stream ended before the message did")
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)]}

    def _events(self, chunk: bytes) -> Iterator[bytes]:
        *lines, rest = (bytes(self._line) + chunk).split(b"\n")
        self._line = bytearray(rest)
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:])
            elif not line and self._data:
                data, self._data = b"\n".join(self._data), []
                yield data

    def _take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                self._message = dict(event["message"])
            case "content_block_start":
                self._blocks[int(event["index"])] = dict(event["content_block"])
            case "content_block_delta":
                self._add(int(event["index"]), event["delta"])
            case "content_block_stop" if (index := int(event["index"])) in self._inputs:
                self._blocks[index]["input"] = json.loads("".join(self._inputs.pop(index)) or "{}")
            case "message_delta":
                counts = {name: count for name, count in (event.get("usage") or {}).items() if count is not None}
                self._message |= event["delta"]
                self._message["usage"] = {**(self._message.get("usage") or {}), **counts}
            case "message_stop":
                self.ended = True
            case "error":
                raise ErrorEvent(event)
            case _:
                pass  # pings, and kinds that later versions of the API add

    def _add(self, index: int, delta: dict[str, Any]) -> None:
        block = self._blocks[index]
        match delta["type"]:
            case "text_delta":
                block["text"] = block.get("text", "") + delta["text"]
            case "input_json_delta":
                self._inputs.setdefault(index, []).append(delta["partial_json"])
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta["thinking"]
            case "signature_delta":
                block["signature"] = delta["signature"]
            case _:
                pass  # citations


def reply(found: Any, heard: Heard) -> Reply:
    """A whole message, as it came. Raises ValueError when it is none."""
    if not isinstance(found, dict) or found.get("type") != "message" or not isinstance(found.get("content"), list):
        raise ValueError("the reply is no message of the Messages API")
    blocks = [sendable(block) for block in found["content"] if isinstance(block, dict)]
    model, reason = str(found.get("model", "")), found.get("stop_reason")
    return Reply(model, blocks, reason and str(reason), _usage(found.get("usage")), heard.request_id)


def _usage(found: Any) -> Usage:
    if not isinstance(found, dict):
        raise ValueError("the reply has no usage")
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [found.get(name) or 0 for name in names]
    if not all(isinstance(count, int) and 0 <= count < 1 << 40 for count in counts):
        raise ValueError("the reply's usage are no counts")
    return Usage(*counts)
