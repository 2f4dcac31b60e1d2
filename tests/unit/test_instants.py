"""A time in an event is an instant: the same bytes on every machine, and no naive time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import AwareDatetime, ValidationError

from farandole import Event, ids
from farandole.contracts.codec import contract, decode
from farandole.envelope import Emitter, begin

AT = datetime(2026, 3, 29, 1, 30, 0, 123_456, tzinfo=UTC)
RAW = begin(ids.new_trace_id(), Emitter("client"), "jobs.Met")


class Met(Event, topic="jobs.met"):
    at: AwareDatetime


@pytest.fixture(params=["Asia/Tokyo", "America/New_York", "UTC"])
def zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """The machine's time zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def test_a_naive_time_is_refused_and_an_aware_one_is_the_same_instant_in_every_zone(zone: str) -> None:
    """Case S1."""
    for naive in (AT.replace(tzinfo=None), "2026-03-29T01:30:00"):
        with pytest.raises(ValidationError, match="at"):
            Met(at=naive)
    made = contract(Met, "jobs")
    tokyo, local = AT.astimezone(timezone(timedelta(hours=9))), AT.astimezone()
    written = {made.encode(RAW, Met(at=at)) for at in (AT, tokyo, local)}
    (value,) = written
    micros = (AT - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert value.endswith(_zigzag(micros)), zone
    assert made.read(decode(value, made.writer)) == Met(at=AT)


def _zigzag(number: int) -> bytes:
    """A long as Avro 1.12 writes it."""
    left, out = number << 1, bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])
