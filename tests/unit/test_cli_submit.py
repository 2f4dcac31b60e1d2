"""Rows become submissions or are named with their place; commands read their arguments strictly."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import AwareDatetime

from farandole import Event
from farandole.cli.jobs import age, find
from farandole.cli.submit import Sent
from farandole.errors import ExitCode, FarandoleError
from farandole.sources import Row
from farandole.submissions import InvalidRow, submissions


class Mail(Event, topic=".mail", stage="submitted", ingest=True):
    message_id: str
    at: AwareDatetime
    size: int = 0
    note: str | None = None


GOOD = {"message_id": "m1", "at": "2026-01-02T03:04:05+00:00"}


def rows(*fields: dict[str, Any]) -> Iterator[Row]:
    for number, one in enumerate(fields, start=1):
        yield Row(f"inbox.jsonl, line {number}", number, one)


def test_a_row_becomes_a_submission_with_key_time_and_tenant() -> None:
    (made,) = submissions(rows(GOOD | {"size": "7"}), Mail, key="message_id", at="at", tenant="acme")
    assert made.payload == Mail(message_id="m1", at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), size=7)
    assert (made.key, made.at, made.tenant) == ("m1", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "acme")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"size": "many"}, "line 2: field 'size'"),
        ({"at": "2026-01-02T03:04:05"}, "line 2: field 'at'"),  # naive
        ({"colour": "red"}, "line 2: field 'colour'"),
        ({"message_id": None}, "line 2: field 'message_id'"),
        ({"message_id": ""}, "line 2: field 'message_id' is empty"),
    ],
)
def test_an_invalid_row_is_named_by_line_and_field(bad: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRow, match=words):
        list(submissions(rows(GOOD, GOOD | bad), Mail, key="message_id"))


def test_invalid_rows_can_be_skipped_and_are_reported() -> None:
    skipped: list[InvalidRow] = []
    made = list(submissions(rows(GOOD, {"message_id": "m2"}, GOOD), Mail, skip=skipped.append))
    assert len(made) == 2
    assert [str(error).split(":")[0] for error in skipped] == ["inbox.jsonl, line 2"]


def test_rows_are_drawn_only_as_they_are_needed() -> None:
    def endless() -> Iterator[Row]:
        number = 0
        while True:
            number += 1
            yield Row(f"line {number}", number, GOOD)

    assert next(iter(submissions(endless(), Mail))).payload == Mail.model_validate(GOOD)


@pytest.mark.parametrize("option", ["key", "at"])
def test_a_key_field_that_is_not_there_is_named(option: str) -> None:
    with pytest.raises(FarandoleError, match="Mail has no field 'id'; it has message_id, at, size, note"):
        list(submissions(rows(GOOD), Mail, **{option: "id"}))  # type: ignore[arg-type]


def test_a_time_field_must_be_a_time() -> None:
    with pytest.raises(InvalidRow, match="field 'note' is no time"):
        list(submissions(rows(GOOD), Mail, at="note"))


def test_an_error_says_how_many_were_sent_and_whether_a_rerun_is_safe() -> None:
    keyed, unkeyed = Sent(keyed=True), Sent(keyed=False)
    error = FarandoleError("line 3: no", ExitCode.FAILED)
    assert str(keyed.explain(error)) == "line 3: no; nothing was submitted"
    keyed.count = unkeyed.count = 2
    assert str(keyed.explain(error)).endswith("2 submitted before it; with the same --key a rerun is safe")
    assert "would submit them again" in str(unkeyed.explain(error))


def test_ages_are_read_strictly() -> None:
    assert [age(text, "--older") for text in ("90s", "5m", "2h", "1.5d")] == [
        timedelta(seconds=90), timedelta(minutes=5), timedelta(hours=2), timedelta(days=1.5),
    ]  # fmt: skip
    for wrong in ("5", "m", "5 weeks", "-5m", ""):
        with pytest.raises(FarandoleError, match="--older is"):
            age(wrong, "--older")


@pytest.mark.parametrize(("trace", "key"), [(None, None), ("0189", "k")])
def test_a_job_is_named_in_exactly_one_way(trace: str | None, key: str | None) -> None:
    with pytest.raises(FarandoleError, match="which job") as raised:
        find(None, None, trace, key, None)  # type: ignore[arg-type]
    assert raised.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("trace", ["'; DROP TABLE job", "018", "xyz12", "0189" * 20])
def test_what_is_no_job_id_is_refused(trace: str) -> None:
    with pytest.raises(FarandoleError, match="is no job id"):
        find(None, None, trace, None, None)  # type: ignore[arg-type]
