"""Text from anywhere made harmless to look at."""

from __future__ import annotations

import re

#: Control characters (ANSI escapes start with one), bidi marks that reorder what is read, lone surrogates.
_HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def clean(text: object) -> str:
    """Text that a terminal shows and does not obey.

    >>> clean("a\\x1b[31mred")
    'a\\\\x1b[31mred'
    """
    return _HARMFUL.sub(lambda match: _NAMED.get(match[0]) or _escaped(match[0]), str(text))


def clean_json(text: str) -> str:
    """JSON text (of one line, or indented) that still means the same, with what a terminal would obey escaped."""
    return "\n".join(_HARMFUL.sub(lambda match: f"\\u{ord(match[0]):04x}", line) for line in text.split("\n"))


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
