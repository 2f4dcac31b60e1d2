"""What is committed beside a partition's position: who committed it, and the records finished beyond it, as short text.

    farandole1 <owner> <token> <position> <form><data>

`owner` is the transactional id of the worker, `token` names this one commit. `data` is base64: in form "r" the lengths of
gap and run in turn, as varints; in form "b" one bit an offset, counted from the position. Whichever is shorter is written.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Half-open ranges of offsets, ascending, apart from each other.
Ranges = Sequence[tuple[int, int]]

_MARK = "farandole1"

#: Kafka takes 4,095 UTF-16 units of metadata, and the client's closing NUL counts. 3,600 characters of base64 leave room for
#: the words before them.
MAX_BYTES = 2_700


class Unreadable(ValueError):
    """The metadata is not ours, or not of this position; what it says is not to be relied on."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a commit said of itself."""

    owner: str
    token: str
    beyond: Ranges = ()


def encode(note: Note, position: int) -> str:
    """The text for a commit at `position`. Raises ValueError where `fits` was not heeded.

    >>> encode(Note("act.0", "t1", [(7, 9)]), 5)
    'farandole1 act.0 t1 5 bDA=='
    """
    span = note.beyond[-1][1] - position if note.beyond else 0
    if span <= 8 * MAX_BYTES and 16 * len(note.beyond) > span:  # a run takes two bytes at least
        form, data = "b", _bitmap(note.beyond, position)
    else:
        form, data = "r", _runs(note.beyond, position)
        if len(data) > span // 8 + 1 and span <= 8 * MAX_BYTES:
            form, data = "b", _bitmap(note.beyond, position)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{len(note.beyond)} ranges beyond {position} take {len(data)} bytes; {MAX_BYTES} fit")
    return f"{_MARK} {note.owner} {note.token} {position} {form}{base64.b64encode(data).decode()}"


def decode(text: str, position: int) -> Note:
    """What `encode` was given. Raises Unreadable for any other text.

    >>> decode('farandole1 act.0 t1 5 bDA==', 5)
    Note(owner='act.0', token='t1', beyond=[(7, 9)])
    """
    words = text.split(" ")
    if len(words) != 5 or words[0] != _MARK:
        raise Unreadable(f"expected '{_MARK} …', found {text[:40]!r}")
    _, owner, token, place, data = words
    if place != str(position):
        raise Unreadable(f"it is of position {place[:20]}, the position is {position}: somebody has moved it")
    try:
        raw = base64.b64decode(data[1:], validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unreadable(f"its data is not base64: {error}") from error
    if data[:1] == "r":
        return Note(owner, token, _from_runs(raw, position))
    if data[:1] == "b":
        return Note(owner, token, _from_bitmap(raw, position))
    raise Unreadable(f"its form is {data[:1]!r}; expected 'r' or 'b'")


def fits(runs: int, span: int) -> bool:
    """Whether any `runs` ranges within `span` offsets of the position can be encoded.

    >>> fits(400, 100_000), fits(10_000, 20_000), fits(10_000, 100_000)
    (True, True, False)
    """
    return span <= 8 * MAX_BYTES or 2 * runs * _width(span) <= MAX_BYTES


def _width(value: int) -> int:
    """Bytes of a varint that holds `value`."""
    return max(1, -(-value.bit_length() // 7))


def _runs(beyond: Ranges, position: int) -> bytes:
    data = bytearray()
    for first, end in beyond:
        _write_varint(data, first - position)
        _write_varint(data, end - first)
        position = end
    return bytes(data)


def _write_varint(data: bytearray, value: int) -> None:
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)


def _from_runs(data: bytes, position: int) -> Ranges:
    numbers = list(_varints(data))
    if len(numbers) % 2 or 0 in numbers[1::2]:
        raise Unreadable("its runs are cut off")
    found = []
    for gap, length in zip(numbers[::2], numbers[1::2], strict=True):
        first = position + gap
        position = first + length
        found.append((first, position))
    return found


def _varints(data: bytes) -> Iterable[int]:
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield value
            value = shift = 0
    if shift:
        raise Unreadable("its runs are cut off")


def _bitmap(beyond: Ranges, position: int) -> bytes:
    digits: list[str] = []
    at = position
    for first, end in beyond:
        digits += "0" * (first - at), "1" * (end - first)
        at = end
    bits = int("".join(digits)[::-1], 2)  # the first offset is the lowest bit
    return bits.to_bytes(-(-bits.bit_length() // 8), "little")


def _from_bitmap(data: bytes, position: int) -> Ranges:
    bits = int.from_bytes(data, "little")
    found = []
    at = position
    while bits:
        gap = (bits & -bits).bit_length() - 1
        bits >>= gap
        length = (~bits & (bits + 1)).bit_length() - 1
        bits >>= length
        found.append((at + gap, at + gap + length))
        at += gap + length
    return found
