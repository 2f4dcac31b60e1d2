"""Ids that are derived, never random where a rerun must agree: UUIDv8 for facts, UUIDv7 for jobs without a key.

UUIDv7 and UUIDv8 are those of RFC 9562. Both start with 48 bits of time (or of a hash), and an event's id copies the
48 bits of its job, so that the events of a job lie together in an index.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

#: Ids on the wire: lower-case, 36 characters. Other spellings would be other Kafka keys.
is_id = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def _uuid8(prefix: str, digest: str) -> str:
    """Text of a UUIDv8: `prefix` is `xxxxxxxx-xxxx` (48 bits), then 74 bits of the hex `digest`."""
    return f"{prefix}-8{digest[:3]}-{'89ab'[int(digest[3], 16) & 3]}{digest[4:7]}-{digest[7:19]}"


def _hash(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()


def _prefix(milliseconds: int) -> str:
    text = f"{milliseconds & 0xFFFF_FFFF_FFFF:012x}"
    return f"{text[:8]}-{text[8:]}"


def event_id(trace_id: str, causes: Sequence[str], emitter: str, run: int, event_type: str, position: int) -> str:
    """The id of the fact that `emitter` derives from `causes`: the same handling again gives the same id.

    `position` is the place among the handling's outputs. The emitter's version is no part of it, so a deploy in the
    middle of a redelivery changes nothing.

    >>> trace = "01890a5d-ac96-774b-bcce-b302099a8057"
    >>> event_id(trace, [trace], "classify", 0, "jobs.Classified", 0)
    '01890a5d-ac96-8f46-819e-de8d3e70ad16'
    """
    return _uuid8(trace_id[:13], _hash(*causes, emitter, str(run), event_type, str(position)))


def new_trace_id() -> str:
    """A fresh UUIDv7, for a job that has no business key."""
    random = secrets.token_hex(10)
    return f"{_prefix(time.time_ns() // 1_000_000)}-7{random[:3]}-{'89ab'[int(random[3], 16) & 3]}{random[4:7]}-{random[7:19]}"


def trace_id_of_key(flow: str, key: str, at: datetime | None = None, tenant: str | None = None) -> str:
    """The job of a business key: submitting the same key twice is one job.

    Its first 48 bits are those of `at` (a business time, such as when a mail was received) if given, else of the hash;
    so give the same `at` each time, or never.

    >>> trace_id_of_key("jobs", "order-7") == trace_id_of_key("jobs", "order-7")
    True
    """
    digest = _hash("trace", flow, tenant or "", key)
    if at is None:
        return _uuid8(f"{digest[52:60]}-{digest[60:64]}", digest)
    if at.tzinfo is None:
        raise ValueError("a business time needs a time zone; this one is naive")
    return _uuid8(_prefix(int(at.timestamp() * 1000)), digest)


def trace_id_of_record(topic: str, partition: int, offset: int, timestamp_ms: int) -> str:
    """The job of a record that brings neither a trace_id nor a key: named by where it lies in the log."""
    return _uuid8(_prefix(timestamp_ms), _hash("record", topic, str(partition), str(offset), str(timestamp_ms)))
