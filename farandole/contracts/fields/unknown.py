"""The word that a reader takes a symbol for which it does not know; a producer's misspelt word stays an error."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from farandole.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Unknown:
    """Which word of a Literal a reader takes for words of newer versions; an enum class says `__unknown__ = "word"`.

    >>> from typing import Annotated, Literal
    >>> Mood = Annotated[Literal["calm", "cross", "other"], Unknown("other")]
    """

    symbol: str


def unknown_of(kind: type[enum.Enum], path: str) -> str | None:
    """The symbol that `kind` declares as `__unknown__`. Raises ConfigurationError when it is none, or `_missing_` would do."""
    answer: Callable[[object], Any] = kind._missing_
    example = kind.__name__ + ".__unknown__ = 'word'"
    try:
        guessed = answer("?")
    except Exception:  # noqa: BLE001  a user's method; raising is what it should do
        guessed = None
    if guessed is not None:
        raise ConfigurationError(
            f"{path}: {kind.__name__}._missing_ takes any word, also a misspelt one in a producer; expected {example}, "
            "which only readers use"
        )
    symbol = kind.__dict__.get("__unknown__")
    if symbol is None:
        return None
    found = getattr(symbol, "value", symbol)
    words = [member.value for member in kind]
    if found not in words:
        raise ConfigurationError(
            f"{path}: {kind.__name__}.__unknown__ is {found!r}; expected one of {', '.join(words)}"
        )
    return str(found)
