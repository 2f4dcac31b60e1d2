"""Values without parts: what each Python type is in Avro, how it is checked when written and made again when read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, EmailStr

from farandole.contracts.envelope_fields import UUID as UUID_TYPE

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICRO = timedelta(microseconds=1)
_MIDNIGHT = datetime(1970, 1, 1)  # noqa: DTZ001  a time of day has no zone
_DAY = 86_400_000_000
#: Microseconds since 1970. Outside the years 1 to 9999 neither Python nor Postgres has a date.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


class Misfit(Exception):
    """A value that has no place in its field. `path` leads to it, from the field outwards; the text says what is wrong."""

    def __init__(self, wrong: str) -> None:
        super().__init__(wrong)
        self.path = ""

    def within(self, step: str) -> Misfit:
        """The same, seen from one level further out."""
        self.path = step + self.path
        return self

    def hidden(self) -> Misfit:
        """The same without what was found, which is somebody's: errors go into logs and events."""
        made = Misfit(str(self).partition(", found")[0] + ", found other personal data")
        made.path = self.path
        return made


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A Python type and its Avro form."""

    python: type  #: values are of exactly this type
    avro: Any  #: as it stands in the schema
    raw: str  #: the Avro type that carries it
    check: Callable[[Any], Any]  #: as Avro's own type. Raises Misfit
    read: Callable[[Any], Any] | None = None  #: from Avro's own type; None where pydantic takes that as it is


def shown(value: object) -> str:
    """A value in an error, short; whatever its own repr does."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  a user's class may raise anything
        text = "?"
    kind = type(value).__name__
    short = text if len(text) <= 60 else text[:57] + "…"
    return short if value is None or kind in text.partition("(")[0].split(".") else f"{kind} {short}"


def expected(what: str, value: object) -> Misfit:
    return Misfit(f"expected {what}, found {shown(value)}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise expected("str", value)
    return value if type(value) is str else str.__str__(value)


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise expected("int", value)
    return int.__pos__(value)  # what it is, whatever a derived class says


def _number(value: Any) -> float:
    if not isinstance(value, float):
        raise expected("float", value)
    if not math.isfinite(value):
        raise Misfit(f"expected a finite float, found {value!r}")
    return float.__pos__(value)


def _exactly(python: type) -> Callable[[Any], Any]:
    def write(value: Any) -> Any:
        if type(value) is not python:
            raise expected(python.__name__, value)
        return value

    return write


def _uuid(value: Any) -> str:
    if not isinstance(value, UUID):
        raise expected("UUID", value)
    return UUID.__str__(value)


def _day(value: Any) -> int:
    if type(value) is not date:
        raise expected("date", value)
    return value.toordinal() - _EPOCH_DAY


def _day_read(days: Any) -> date:
    try:
        return date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise Misfit(f"expected a date of the years 1 to 9999, found day {days} since 1970") from None


def _instant(value: Any) -> int:
    if not isinstance(value, datetime):
        raise expected("datetime", value)
    if value.tzinfo is not UTC and value.utcoffset() is None:
        raise Misfit(f"expected a datetime with a time zone, found {value.isoformat()}, another instant in each zone")
    since = value - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if not _FIRST <= micros <= _LAST:  # 9999-12-31 23:00 west of Greenwich is the year 10000 in UTC
        _instant_read(micros)
    return micros


def _instant_read(micros: Any) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise Misfit(f"expected an instant of the years 1 to 9999, found {micros} µs since 1970") from None


def _clock(value: Any) -> int:
    if type(value) is not time:
        raise expected("time", value)
    if value.tzinfo is not None:
        raise Misfit(f"expected a time without a zone, found {value.isoformat()}; an instant is an AwareDatetime")
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _clock_read(micros: Any) -> time:
    if not 0 <= micros < _DAY:
        raise Misfit(f"expected a time of one day, found {micros} µs since midnight")
    return (_MIDNIGHT + timedelta(microseconds=micros)).time()


def _span(value: Any) -> int:
    if not isinstance(value, timedelta):
        raise expected("timedelta", value)
    return value // _MICRO


def _bytes_read(value: Any) -> Any:
    return value.encode("latin-1") if isinstance(value, str) else value  # a default, as it stands in the schema's JSON


def decimal(precision: int, scale: int) -> Scalar:
    """A Decimal of at most `precision` digits, `scale` of them behind the point; what does not fit is never rounded."""
    wanted = f"a Decimal of at most {precision} digits, {scale} of them behind the point"
    limit, context = 10**precision, Context(prec=precision)

    def write(value: Any) -> bytes:
        if type(value) is not Decimal or not value.is_finite():
            raise expected(wanted, value)
        sign, digits, exponent = value.as_tuple()
        if not value:
            return b"\0"
        shift = int(exponent) + scale
        kept, lost = (digits, ()) if shift >= 0 else (digits[:shift], digits[shift:])
        if value.adjusted() >= precision - scale or not kept or any(lost):
            raise expected(wanted, value)
        number = int("".join(map(str, kept))) * 10 ** max(shift, 0)
        return unscaled(-number if sign else number)

    def read(value: Any) -> Decimal:
        number = int.from_bytes(_bytes_read(value), "big", signed=True)
        if not -limit < number < limit:
            raise Misfit(f"expected {wanted}, found one of {len(value)} bytes")
        return Decimal(number).scaleb(-scale, context)

    avro = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    return Scalar(Decimal, avro, "bytes", write, read)


def unscaled(number: int) -> bytes:
    """Two's complement, big-endian, the fewest bytes."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


_STRING = Scalar(str, "string", "string", _text)

#: By annotation. Decimal is missing: its form depends on the field.
SCALARS: dict[Any, Scalar] = {
    str: _STRING,
    EmailStr: _STRING,
    int: Scalar(int, "long", "long", _integer),
    float: Scalar(float, "double", "double", _number),
    bool: Scalar(bool, "boolean", "boolean", _exactly(bool)),
    bytes: Scalar(bytes, "bytes", "bytes", _exactly(bytes), _bytes_read),
    UUID: Scalar(UUID, UUID_TYPE, "string", _uuid),
    date: Scalar(date, {"type": "int", "logicalType": "date"}, "int", _day, _day_read),
    AwareDatetime: Scalar(
        datetime, {"type": "long", "logicalType": "timestamp-micros"}, "long", _instant, _instant_read
    ),
    time: Scalar(time, {"type": "long", "logicalType": "time-micros"}, "long", _clock, _clock_read),
    timedelta: Scalar(
        # not Avro's duration: that has months, milliseconds, and no sign
        timedelta,
        {"type": "long", "unit": "microseconds"},
        "long",
        _span,
        lambda micros: timedelta(microseconds=micros),
    ),
}
