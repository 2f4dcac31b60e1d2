"""Avro's values without parts, from bytes: each reader takes the bytes and where the value begins, and gives it and its end."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from farandole.contracts.fields.scalars import Misfit

#: Raises Misfit, IndexError, struct.error or UnicodeDecodeError. An end beyond the bytes is for the caller to notice.
Read = Callable[[bytes, int], tuple[Any, int]]

_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
#: Bits. The largest shift of a group of seven in an integer of 64.
_LAST_SHIFT = 63


def _null(_data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    if (byte := data[at]) > 1:
        raise Misfit(f"a boolean of {byte}")
    return byte == 1, at + 1


def integer(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at
    number, shift = byte & 127, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > _LAST_SHIFT:
            raise Misfit("an integer of more than 64 bits")
    if number >> 64:
        raise Misfit("an integer of more than 64 bits")
    return (number >> 1) ^ -(number & 1), at


def _int(data: bytes, at: int) -> tuple[int, int]:
    number, at = integer(data, at)
    if not -(2**31) <= number < 2**31:
        raise Misfit("an int of more than 32 bits")
    return number, at


def _float(data: bytes, at: int) -> tuple[float, int]:
    return _FLOAT.unpack_from(data, at)[0], at + 4


def _double(data: bytes, at: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(data, at)[0], at + 8


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _size(data, at)
    return data[at : at + size], at + size


def string(data: bytes, at: int) -> tuple[str, int]:
    size = data[at]
    if size & 129:  # odd or above 127: negative, or of several bytes
        size, at = _size(data, at)
    else:
        size >>= 1
        at += 1
    end = at + size
    return data[at:end].decode(), end


def _size(data: bytes, at: int) -> tuple[int, int]:
    """A length: no more than there is."""
    size, at = integer(data, at)
    if not 0 <= size <= len(data) - at:
        raise Misfit(f"a length of {size} with {len(data) - at} bytes left")
    return size, at


UNPACK: dict[str, Read] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": integer,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": string,
}


def count_of(data: bytes, at: int) -> tuple[int, int]:
    """How many items a block has, 0 after the last one: no more than bytes are left, since each has one at least."""
    count, at = integer(data, at)
    if count < 0:
        count = -count
        _, at = _size(data, at)
    if count > len(data) - at:
        raise Misfit(f"{count} items with {len(data) - at} bytes left")
    return count, at
