"""Avro's binary encoding of values without parts; the only place that knows how numbers and texts lie in bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from farandole.contracts.fields.scalars import Misfit, Scalar

Write = Callable[[Any], bytes]


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


#: Lengths, indexes and small numbers, ready: they are most of what is written.
SMALL: tuple[bytes, ...] = tuple(_varint(2 * number) for number in range(8192))


#: What takes eight bytes begins here, and ends at 128 times as much.
_TIMES = 1 << 48


def long(number: int) -> bytes:
    """A number of at most 64 bits, zigzag. Raises Misfit for a larger one."""
    if 0 <= number < 8192:
        return SMALL[number]
    if 1 << 13 <= number < 1 << 20:  # three bytes: days, prices
        return bytes((number << 1 & 127 | 128, number >> 6 & 127 | 128, number >> 13))
    if _TIMES <= number < 128 * _TIMES:  # microseconds of this century: eight bytes, and in every envelope
        number <<= 1
        return bytes((
            number & 127 | 128, number >> 7 & 127 | 128, number >> 14 & 127 | 128, number >> 21 & 127 | 128,
            number >> 28 & 127 | 128, number >> 35 & 127 | 128, number >> 42 & 127 | 128, number >> 49,
        ))  # fmt: skip
    top = number >> 63
    if top == 0:
        return _varint(number << 1)
    if top == -1:
        return _varint((number << 1) ^ -1)
    raise Misfit(f"expected a number of at most 64 bits, found one of {number.bit_length() + 1}")


def data(value: bytes) -> bytes:
    """Bytes, their number before them."""
    return long(len(value)) + value


def text(value: str) -> bytes:
    """A text in UTF-8. Raises Misfit for half a surrogate pair."""
    try:
        encoded = value.encode()
    except UnicodeEncodeError as error:
        raise Misfit(f"half a surrogate pair at character {error.start}; expected text that UTF-8 can hold") from None
    length = len(encoded)
    return (SMALL[length] if length < 8192 else _varint(2 * length)) + encoded


def boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


_PACK: dict[str, Callable[[Any], bytes]] = {
    "string": text,
    "int": long,
    "long": long,
    "double": struct.Struct("<d").pack,
    "boolean": boolean,
    "bytes": data,
}


def scalar(kind: Scalar) -> Write:
    """Checks a value and packs it. Texts and numbers, which are most of what is written, in one call each."""
    check, pack = kind.check, _PACK[kind.raw]

    def write(value: Any) -> bytes:
        return pack(check(value))

    def write_text(value: Any) -> bytes:
        if type(value) is not str:
            value = check(value)
        try:
            encoded: bytes = value.encode()
        except UnicodeEncodeError:
            return text(value)
        length = len(encoded)
        return (SMALL[length] if length < 8192 else _varint(2 * length)) + encoded

    def write_number(value: Any) -> bytes:
        if type(value) is not int:
            value = check(value)
        return SMALL[value] if 0 <= value < 8192 else long(value)

    return write_text if kind.python is str else write_number if kind.python is int else write
