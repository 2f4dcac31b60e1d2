"""Decoded values in JSON's types, by the schema alone: for readers without an event class, such as the projector."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  the zone follows where there is one
_EPOCH_DAY = date(1970, 1, 1).toordinal()

#: From Avro's value and the list that takes what could not be told.
Form = Callable[[Any, list[Any]], Any]


def form_of(schema: Any) -> Form:
    """What gives fields of a record of `schema` (fastavro's form, with logical types) their JSON form, in place.

    Dates and times become ISO 8601, decimals texts (a JSON number would be rounded by many a reader), our durations ISO 8601
    too, with seconds alone, which Postgres takes as an interval. What no calendar has becomes null, and is put on the list.
    """
    return _Forms().of(schema) or _as_it_is


def _as_it_is(value: Any, _lost: list[Any]) -> Any:
    return value


def _untold(value: Any, lost: list[Any]) -> None:
    """A number that may be a day or an instant: which of a union's branches was written, its value does not tell."""
    lost.append(value)


class _Forms:
    """The forms of one schema; a name may stand for a type that is being made."""

    def __init__(self) -> None:
        self._named: dict[str, Form] = {}
        self._fixed: set[str] = set()

    def of(self, kind: Any) -> Form | None:
        """None for what is JSON already, or bytes, which whoever writes JSON knows about."""
        if isinstance(kind, str):
            return partial(self._call, kind) if kind in self._named else None
        if isinstance(kind, list):
            return self._union(kind)
        scalar = _scalar(kind)
        if scalar:
            form = _guarded(scalar)
            if "name" in kind:
                self._named[kind["name"]] = form
                self._fixed.add(kind["name"])
            return form
        match kind.get("type"):
            case "record" | "error":
                return self._record(kind)
            case "array":
                return _array(self.of(kind["items"]))
            case "map":
                return _map(self.of(kind["values"]))
            case dict() | list() as inner:
                return self.of(inner)
        return None

    def _call(self, name: str, value: Any, lost: list[Any]) -> Any:
        return self._named[name](value, lost)

    def _record(self, kind: Any) -> Form:
        plan: list[tuple[str, Form]] = []

        def apply(fields: Any, lost: list[Any]) -> Any:
            for name, form in plan:
                fields[name] = form(fields[name], lost)
            return fields

        self._named[kind["name"]] = apply
        plan += [(field["name"], form) for field in kind["fields"] if (form := self.of(field["type"]))]
        return apply

    def _union(self, branches: list[Any]) -> Form | None:
        found: dict[type, list[Form | None]] = {}
        for branch in branches:
            if branch != "null":
                found.setdefault(self._python(branch), []).append(self.of(branch))
        forms = {python: of[0] if len(of) == 1 else _untold for python, of in found.items() if any(of)}
        if not forms:
            return None

        def apply(value: Any, lost: list[Any]) -> Any:
            if isinstance(value, tuple):  # one of several records, with its name
                return self._call(value[0], value[1], lost)
            form = forms.get(type(value))
            return value if form is None else form(value, lost)

        return apply

    def _python(self, branch: Any) -> type:
        """The type in which Avro's reader brings a branch."""
        if isinstance(branch, str) and branch in self._fixed:
            return bytes
        return _PYTHON.get(branch["type"] if isinstance(branch, dict) else branch, dict)


def _array(items: Form | None) -> Form | None:
    return items and (lambda values, lost: [items(value, lost) for value in values])


def _map(items: Form | None) -> Form | None:
    return items and (lambda values, lost: {key: items(value, lost) for key, value in values.items()})


_PYTHON = {
    "int": int, "long": int, "float": float, "double": float, "boolean": bool, "string": str, "bytes": bytes, "array": list,
    "fixed": bytes, "enum": str,
}  # fmt: skip


def _guarded(tell: Callable[[Any], Any]) -> Form:
    def apply(value: Any, lost: list[Any]) -> Any:
        try:
            return tell(value)
        except (OverflowError, ValueError, struct.error):
            lost.append(value)
            return None

    return apply


def _scalar(kind: Any) -> Callable[[Any], Any] | None:
    """What tells a value of a logical type, or of our own unit."""
    logical = kind.get("logicalType", "")
    base, _, unit = str(logical).rpartition("-")
    if kind.get("unit") == "microseconds" and kind.get("type") == "long":
        return _seconds
    match logical, kind.get("type"):
        case "date", "int":
            return lambda days: date.fromordinal(days + _EPOCH_DAY).isoformat()
        case "decimal", "bytes" | "fixed":
            scale = int(kind.get("scale") or 0)
            return lambda data: _decimal(int.from_bytes(data, "big", signed=True), scale)
        case "uuid", "fixed":
            return lambda data: str(UUID(bytes=data))
        case "duration", "fixed":
            return _months
    micros = _MICROS.get(unit)
    if micros and kind.get("type") in ("int", "long"):
        if base == "timestamp":
            return lambda number: (_EPOCH + timedelta(microseconds=micros(number))).replace(tzinfo=UTC).isoformat()
        if base == "local-timestamp":
            return lambda number: (_EPOCH + timedelta(microseconds=micros(number))).isoformat()
        if base == "time":
            return lambda number: _clock(micros(number))
    return None


_MICROS: dict[str, Callable[[int], int]] = {
    "millis": lambda number: number * 1000,
    "micros": lambda number: number,
    "nanos": lambda number: number // 1000,
}


def _clock(micros: int) -> str:
    if not 0 <= micros < 86_400_000_000:
        raise ValueError(micros)
    return (_EPOCH + timedelta(microseconds=micros)).time().isoformat()


def _seconds(micros: int) -> str:
    seconds = _decimal(micros, 6)
    return f"PT{seconds.rstrip('0').rstrip('.')}S"


def _months(data: bytes) -> str:
    months, days, millis = struct.unpack("<III", data)
    return f"P{months}M{days}DT{_decimal(millis, 3)}S"


def _decimal(number: int, scale: int) -> str:
    digits = str(abs(number)).rjust(scale + 1, "0")
    whole = digits if not scale else f"{digits[:-scale]}.{digits[-scale:]}"
    return f"-{whole}" if number < 0 else whole
