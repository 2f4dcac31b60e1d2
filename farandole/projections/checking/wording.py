"""What SQL says at a glance: its words without comments and texts, where a statement ends a transaction, what reads the
clock."""

from __future__ import annotations

import re
from collections.abc import Iterator

_QUIET = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$", re.DOTALL
)  # comments; texts; dollar-quoted bodies

#: A statement of these does what is the projector's to do. `ROLLBACK TO` a savepoint of one's own is fine.
_ENDS = re.compile(
    r"(?:COMMIT|END|ABORT|BEGIN|START\s+TRANSACTION|PREPARE\s+TRANSACTION|ROLLBACK(?!\s+(?:\w+\s+)?TO\b))\b.*",
    re.IGNORECASE | re.DOTALL,
)

_CLOCK = re.compile(
    r"\b(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\(|"
    r"\b(?:current_timestamp|current_date|current_time|localtimestamp|localtime)\b",
    re.IGNORECASE,
)
_CHANCE = re.compile(
    r"\b(?:random|random_normal|gen_random_uuid|uuidv4|uuidv7|uuid_generate_v\d\w*|gen_random_bytes)\s*\(",
    re.IGNORECASE,
)
_SERIAL = re.compile(r"\b(?:nextval\s*\(|(?:small|big)?serial\d?\b|AS\s+IDENTITY\b)", re.IGNORECASE)


def spoken(text: str) -> str:
    """The SQL with comments and texts blanked, so that every place is still where it was.

    >>> spoken("SELECT 'x; y', 1 -- now()").split()
    ['SELECT', ',', '1']
    """
    return _QUIET.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def ends_of_transaction(text: str) -> Iterator[tuple[int, str]]:
    """Line and words of each statement that ends or begins a transaction."""
    start = 0
    for statement in spoken(text).split(";"):
        lead = len(statement) - len(statement.lstrip())
        if _ENDS.match(statement.strip()):
            yield text[: start + lead].count("\n") + 1, " ".join(statement.split())[:40]
        start += len(statement) + 1


def clock(text: str) -> list[tuple[int, str]]:
    """Line and word of whatever reads the time of the transaction or of the machine."""
    return _places(_CLOCK, text)


def chance(text: str) -> list[tuple[int, str]]:
    """Line and word of whatever draws a value by chance."""
    return _places(_CHANCE, text)


def serial(text: str) -> list[tuple[int, str]]:
    """Line and word of whatever counts rows as they come."""
    return _places(_SERIAL, text)


def says(text: str, pattern: str) -> bool:
    """Whether the SQL itself, outside comments and texts, matches."""
    return bool(re.search(pattern, spoken(text), re.IGNORECASE))


def _places(pattern: re.Pattern[str], text: str) -> list[tuple[int, str]]:
    words = spoken(text)
    return [(words[: found.start()].count("\n") + 1, found[0].rstrip("( \n")) for found in pattern.finditer(words)]
