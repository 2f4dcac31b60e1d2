"""The envelope of a record as columns of its row: quickly where the bytes are as farandole writes them, else by its fields."""

from __future__ import annotations

import re
import struct
from binascii import unhexlify
from functools import lru_cache
from typing import Any, NamedTuple

from farandole.contracts.fields.scalars import Misfit
from farandole.contracts.wire.unpacking import Read, integer
from farandole.projector.body import clean

#: The columns in `Rest.packed`, in order.
REST = ("run", "hop", "attempt", "scope_id", "part", "parts", "emitted_by", "tenant")

#: What counts from 0; some of them may be null.
_COUNTS = ("run", "hop", "attempt", "part", "parts")

_ID = rb"H[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # H: the length of 36, in Avro
_IDS = re.compile(_ID + _ID + rb"(?:\x00|\x02" + _ID + rb")").match
#: Bytes. Where in that the second and the third id begin, and how long all of it is without the third.
_SECOND, _THIRD, _TWO = 38, 76, 75
_NOBODY = b"\0" * 16
#: Microseconds: times of eight bytes in Avro, about the years 1978 to 2112, which both Python and Postgres surely hold.
_FIRST, _LAST = 2**48, 2**52

_NUMBERS = struct.Struct("!ii ii ii".replace(" ", ""))
_UUID = struct.Struct("!i16s")
_INT = struct.Struct("!ii")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)

#: How many different rests are kept; they are as many as agents, runs, hops, attempts and tenants together.
_KEPT = 10_000


class Rest(NamedTuple):
    """What many events have in common: `REST` in the binary COPY format, and whether a text of it had to be sanitised."""

    packed: bytes
    sanitised: bool


#: event_id, trace_id and causation_id in bytes, occurred_at in microseconds since 1970, and the rest.
Head = tuple[bytes, bytes, bytes | None, int, Rest]


class Heads:
    """Takes envelopes from the bytes of records; remembers what lies behind ids and time, which is nearly always the same.

    `rest` reads the fields from emitted_by to tenant.
    """

    def __init__(self, rest: Read) -> None:
        self._read = rest
        self._rests: dict[bytes, Rest] = {}

    def read(self, value: bytes, at: int) -> tuple[Head, int] | None:
        """The head, and where the payload begins. None: an ordinary reader has to say what these bytes are.

        Raises IndexError and Misfit where the bytes are none of an event.
        """
        ids = _IDS(value, at)
        if ids is None:
            return None
        end = ids.end()
        event_id = unhexlify(value[at + 1 : at + 37].replace(b"-", b""))
        trace_id = unhexlify(value[at + _SECOND : at + _SECOND + 36].replace(b"-", b""))
        cause = None if end - at == _TWO else unhexlify(value[at + _THIRD : end].replace(b"-", b""))
        occurred_at, at = integer(value, end)
        if event_id == _NOBODY or trace_id == _NOBODY or not _FIRST < occurred_at < _LAST:
            return None
        end = at + (value[at] >> 1) + 7  # a text, a byte each for run, hop and attempt, and null three times
        tenant = value[end]
        end += 1
        if tenant:
            end += 1 + (value[end] >> 1)
        key = value[at:end]
        rest = self._rests.get(key) or self._learn(key)
        return rest and ((event_id, trace_id, cause, occurred_at, rest), end)

    def _learn(self, key: bytes) -> Rest | None:
        """None where it is longer than it seemed, or not as `envelope.check` wants it."""
        try:
            fields, end = self._read(key, 0)
        except Misfit:
            return None
        if end != len(key) or min(fields[name] or 0 for name in _COUNTS) < 0:
            return None
        if len(self._rests) == _KEPT:
            self._rests.clear()
        self._rests[key] = rest = _rest(**fields)
        return rest


def head_of(fields: dict[str, Any]) -> Head:
    """The head of a decoded event. Takes the envelope out of `fields`: what is left is the payload."""
    take = fields.pop
    event_id, trace_id, cause = take("event_id"), take("trace_id"), take("causation_id")
    rest = _rest(**{name: take(name) for name in REST})
    return _uuid(event_id), _uuid(trace_id), _uuid(cause) if cause else None, take("occurred_at"), rest


def _rest(
    run: int,
    hop: int,
    attempt: int,
    scope_id: str | None,
    part: int | None,
    parts: int | None,
    emitted_by: str,
    tenant: str | None,
) -> Rest:
    emitter, changed_emitter = packed_text(emitted_by)
    whose, changed_tenant = packed_text(tenant)
    scope = _NULL if scope_id is None else _UUID.pack(16, _uuid(scope_id))
    places = (_NULL if number is None else _INT.pack(4, number) for number in (part, parts))
    packed = b"".join((_NUMBERS.pack(4, run, 4, hop, 4, attempt), scope, *places, emitter, whose))
    return Rest(packed, changed_emitter or changed_tenant)


def _uuid(text: str) -> bytes:
    return unhexlify(text.replace("-", ""))


@lru_cache(4096)
def packed_text(value: str | None) -> tuple[bytes, bool]:
    """A text column in the binary COPY format, and whether it had to be sanitised."""
    if value is None:
        return _NULL, False
    cleaned = clean(value)
    data = cleaned.encode()
    return _LENGTH.pack(len(data)) + data, cleaned != value
