"""Durations as people write them: a number of seconds, or text such as "250ms", "5s" or "2m"."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read(value: str | float) -> float | None:
    """Seconds, of any size; None for what is no duration.

    >>> read("250ms"), read(1.5), read("soon")
    (0.25, 1.5, None)
    """
    if isinstance(value, int | float):
        return float(value)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)", value.strip()) if isinstance(value, str) else None
    return float(match[1]) * _UNITS[match[2]] if match else None
