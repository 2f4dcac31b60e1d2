"""The fake's prompt cache: what is marked with cache_control is written by the first call that has it, read by later ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def tokens(value: Any) -> int:
    """Of a part of a request or a reply, by a rule that is easy to check: four bytes of its JSON a token, rounded up."""
    return -(-_size(value) // 4)


def prompt(body: Mapping[str, Any]) -> dict[str, Any]:
    """What of a request the model reads."""
    names = ("tools", "system", "messages", "output_config")
    return {name: body[name] for name in names if body.get(name) is not None}


class Cache:
    """Whole prefixes of prompts, by model. It forgets nothing, and takes prefixes of any length."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()

    def usage(self, body: Mapping[str, Any]) -> dict[str, int]:
        """The input side of a call's usage."""
        whole = tokens(prompt(body))
        read = kept = 0
        for prefix in _prefixes(body):
            entry = (str(body.get("model")), prefix)
            kept = min(whole, -(-len(prefix.encode("utf-8", "surrogatepass")) // 4))
            if entry in self._known:
                read = kept
        return {
            "input_tokens": whole - kept,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": kept - read,
        }

    def keep(self, body: Mapping[str, Any]) -> None:
        """A reply has begun: what the request marks is in the cache from now on."""
        self._known.update((str(body.get("model")), prefix) for prefix in _prefixes(body))


def _prefixes(body: Mapping[str, Any]) -> Iterator[str]:
    """What comes before each mark, shortest first: tools, then system, then messages."""
    automatic = bool(body.get("cache_control"))  # a mark on the last block
    if not automatic and "cache_control" not in json.dumps(prompt(body)):
        return
    parts = ""
    for block in _blocks(body):
        bare = {name: value for name, value in block.items() if name != "cache_control"}
        parts += json.dumps(bare, ensure_ascii=False, sort_keys=True)
        if block.get("cache_control"):
            yield parts
    if automatic:
        yield parts


def _blocks(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from body.get("tools") or ()
    yield from _content(body.get("system"))
    for message in body.get("messages") or ():
        yield {"role": message.get("role")}
        yield from _content(message.get("content"))


def _content(content: Any) -> Iterator[Mapping[str, Any]]:
    """A text stands for one block of text."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
