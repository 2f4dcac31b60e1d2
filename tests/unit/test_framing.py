"""Both wire formats by their first bytes, and the header that tells what an id alone does not."""

from __future__ import annotations

import pytest

from farandole.contracts import framing
from farandole.contracts.framing import SCHEMA_HEADER, confluent, schema_header, single_object
from farandole.errors import Poison
from farandole.kafka import Headers, Record

CRC = bytes(range(8))
OTHER = bytes(range(8, 16))


def key(value: bytes | None, *headers: tuple[str, bytes | None]) -> bytes:
    return framing.schema_key(Record("jobs.asked", 0, 0, 0, None, value, list(headers)))


def test_a_single_object_names_its_schema_by_fingerprint() -> None:
    value = single_object(CRC) + b"body"
    found = key(value, schema_header(7, OTHER))
    assert (framing.fingerprint_in(found), framing.id_in(found)) == (CRC, None), "no header is asked"
    assert value[framing.body_at(value) :] == b"body"


@pytest.mark.parametrize("number", [0, 1, 999_999, 2**32 - 1])
def test_confluents_framing_names_its_schema_by_id_and_behind_it_by_the_headers_fingerprint(number: int) -> None:
    value = confluent(number) + b"body"
    assert value[framing.body_at(value) :] == b"body"
    bare, told = key(value), key(value, schema_header(number, CRC))
    assert (framing.id_in(bare), framing.fingerprint_in(bare)) == (number, None)
    assert (framing.id_in(told), framing.fingerprint_in(told)) == (number, CRC)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [schema_header(8, CRC)],
        [(SCHEMA_HEADER, None)],
        [(SCHEMA_HEADER, b"")],
        [(SCHEMA_HEADER, schema_header(7, CRC)[1][:-1])],
        [(SCHEMA_HEADER, schema_header(7, CRC)[1] + b"\0")],
        [(SCHEMA_HEADER.upper(), schema_header(7, CRC)[1])],
    ],
    ids=["none", "of another id", "no value", "empty", "short", "long", "another name"],
)
def test_a_header_that_is_not_this_records_tells_nothing(headers: Headers) -> None:
    assert key(confluent(7), *headers) == confluent(7)


def test_of_several_headers_the_last_that_fits_counts() -> None:
    mine, copied = schema_header(7, CRC), schema_header(7, OTHER)
    assert framing.fingerprint_in(key(confluent(7), copied, mine, schema_header(8, OTHER), ("a", None))) == CRC


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (None, "empty"),
        (b"", "empty"),
        (b"\x00", "undecodable"),
        (confluent(7)[:-1], "undecodable"),
        (single_object(CRC)[:-1], "undecodable"),
        (b"\xc3", "undecodable"),
        (b"\xc3\x02" + CRC, "undecodable"),
        (b'{"text": "json"}', "undecodable"),
    ],
)
def test_what_is_in_neither_format_is_poison(value: bytes | None, cause: str) -> None:
    with pytest.raises(Poison) as poison:
        key(value, schema_header(7, CRC))
    assert poison.value.cause == cause
    if cause == "undecodable":
        assert (value or b"")[:2].hex(" ") in str(poison.value)
