"""How source that is written looks: as ruff would lay it out."""

from __future__ import annotations

import json
import textwrap

from farandole.contracts.envelope_fields import Schema
from farandole.errors import ConfigurationError

#: Columns of the source, as ruff formats with this setting.
WIDTH = 120


class Unfit(ConfigurationError):
    """Something that a class of ours cannot have; the message names the field and says why."""


def imports(wanted: dict[str, set[str]]) -> list[str]:
    """Import lines in two blocks, as ruff sorts them."""
    blocks: list[list[str]] = [[], []]
    for module in sorted(wanted):
        plain = sorted((name for name in wanted[module] if " as " not in name), key=_rank)
        aliased = [name for name in wanted[module] if " as " in name]
        lines = sorted([*([", ".join(plain)] if plain else []), *aliased], key=_rank)
        blocks[module in ("farandole", "pydantic")] += [f"from {module} import {line}" for line in lines]
    return ["\n".join(block) for block in blocks if block]


def _rank(name: str) -> tuple[int, str]:
    """Constants first, then classes, then the rest."""
    plain = name.replace(",", " ").partition(" ")[0]
    return (0 if plain.isupper() else 1 if plain[0].isupper() else 2), plain


def doc(schema: Schema) -> list[str]:
    """The docstring, one empty line after it; [] where the schema has none."""
    text = " ".join(str(schema.get("doc") or "").split())
    if not text:
        return []
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    text = "\\" * text.startswith('"') + _visible(text)
    lines = textwrap.wrap(text, WIDTH - 11, break_long_words=False, break_on_hyphens=False)
    lines[0] = f'"""{lines[0]}'
    closed = [lines[0] + " " * text.endswith('"') + '"""'] if len(lines) == 1 else [*lines, '"""']
    return [*(f"    {line}" for line in closed), ""]


def call(start: str, arguments: list[str], end: str, *, indent: int) -> list[str]:
    """A call or the head of a class, on as many lines as ruff would give it."""
    line = f"{start}({', '.join(arguments)}){end}"
    if len(line) <= WIDTH:
        return [line]
    deeper = " " * (indent + 4)
    inner = f"{deeper}{', '.join(arguments)}"
    middle = [inner] if len(inner) <= WIDTH else [f"{deeper}{one}," for one in arguments]
    return [f"{start}(", *middle, f"{' ' * indent}){end}"]


def quoted(text: str, path: str) -> str:
    """A text as ruff quotes it. Raises Unfit for one with half a character, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unfit(f"{path}: {text!r} holds half a character (a lone surrogate)") from None
    plain = _visible(json.dumps(text, ensure_ascii=False))
    if '"' in text and "'" not in text:
        return f"'{plain[1:-1].replace(chr(92) + chr(34), chr(34))}'"
    return plain


def _visible(text: str) -> str:
    """What cannot be seen, or turns the direction of what is seen, as escapes."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def bytes_literal(value: bytes) -> str:
    """Bytes as ruff quotes them."""
    plain = repr(value)
    return f'b"{plain[2:-1]}"' if plain[1] == "'" and b'"' not in value else plain
