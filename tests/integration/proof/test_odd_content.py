"""What no text column or jsonb can hold, wherever it comes: shown sanitised, kept raw, and the partition moves on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import fastavro
import pytest

from farandole import postgres
from farandole.contracts import codec
from farandole.kafka import Record
from farandole.postgres import Connection
from farandole.projector.rows import Parked
from farandole.settings import Settings
from tests import oracle
from tests.integration.projection_tables import Folder, jobs, one, places, prepare, stage_times
from tests.journeys import START, Blocked, Classified, Fact, Log, Submitted, new_fact, written

LONE = "a\ud83db"  #: half of a pair, as JSON of a model may bring it
SHOWN = "a\N{REPLACEMENT CHARACTER}b"


@pytest.fixture
def database(farandole_settings: Settings) -> Iterator[Connection[Any]]:
    prepare(farandole_settings)
    with postgres.connect(farandole_settings) as connection:
        yield connection


def fold(settings: Settings, records: list[Record]) -> Folder:
    folder = Folder(settings, "a", places(records, settings))
    folder.fold(records)
    return folder


def test_a_dead_letter_whose_error_text_holds_nul_blocks_its_job_and_shows_the_text(
    farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P3, for an event that tells of an error."""
    begun, log = new_fact(Submitted), Log(farandole_settings)
    blocked = new_fact(Blocked, cause=begun)
    records = [
        *written(log, [begun]),
        log.append(Blocked, blocked.fields, text="ValueError: a\0b"),
        *written(log, [after := new_fact(Classified, cause=begun, run=1)]),
    ]
    fold(farandole_settings, records)
    assert jobs(database) == oracle.jobs(fact.happened for fact in (begun, blocked, after))
    row = database.execute("SELECT sanitised, body, value FROM event_log WHERE outcome = 'blocked'").fetchone()
    assert row == (True, {"text": f"ValueError: {SHOWN}"}, records[1].value)


@pytest.mark.parametrize("text", ["a\0b", LONE])
def test_a_record_that_is_parked_for_a_reason_with_odd_letters_is_parked_with_them_replaced(
    text: str, farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P3, for the error text of what is set aside, its headers and its key."""
    good = new_fact(Submitted)
    log = Log(farandole_settings)
    record = Record(farandole_settings.topic("jobs.done"), 0, 0, START // 1000, b"a\0b", b"\0", [("a\0b", b"a\0b")])
    records = written(log, [good])
    folder = Folder(farandole_settings, "a", [*places(records, farandole_settings), ("jobs.done", 0)])
    batch = folder.rows.batch(records)
    batch.parked.append(Parked(record, text, f"it said {text}"))
    folder.store.fold(batch, {("jobs.submitted", 0): 1, ("jobs.done", 0): 1}, folder.epochs)
    row = database.execute("SELECT cause, error, headers, key, value FROM parked").fetchone()
    assert row == (SHOWN, f"it said {SHOWN}", [[SHOWN, "YQBi"]], b"a\0b", b"\0")
    assert jobs(database) == oracle.jobs([good.happened])


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_number_without_a_json_form_is_null_in_the_body_and_changes_no_total(
    score: float, farandole_settings: Settings, database: Connection[Any]
) -> None:
    """Case P4, where it has come into an event all the same: another team's producer writes what it likes."""
    begun, log = new_fact(Submitted), Log(farandole_settings)
    odd = new_fact(Classified, cause=begun)
    strange = _written_by_a_stranger(log, odd, score)
    fold(farandole_settings, [*written(log, [begun]), strange])
    happened = [begun.happened, odd.happened]
    assert (jobs(database), stage_times(database)) == (oracle.jobs(happened), oracle.stage_times(happened))
    row = database.execute("SELECT body, sanitised, value FROM event_log WHERE stage = 'classified'").fetchone()
    assert row == ({"text": "hello", "score": None}, True, strange.value)
    assert one(database, "SELECT count(*) FROM parked") == 0


def _written_by_a_stranger(log: Log, fact: Fact, score: float) -> Record:
    """As fastavro writes it, which does not ask whether JSON could."""
    contract = codec.contract(fact.event, log.settings.flow)
    good = contract.encode(fact.fields, fact.event.model_validate({"text": "hello"}))
    schema = contract.writer.parsed
    fields: Any = fastavro.schemaless_reader(BytesIO(good[10:]), schema, None)
    out = BytesIO()
    fastavro.schemaless_writer(out, schema, fields | {"score": score})
    return log.put(contract.topic, 0, good[:10] + out.getvalue(), str(fact.fields["trace_id"]).encode())
