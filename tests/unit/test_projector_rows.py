"""Rows made quickly are those made carefully: of sound records, of odd ones, and of bytes that are none."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farandole.contracts import codec
from farandole.event import Event
from farandole.kafka import Record
from farandole.projector import body, rows
from farandole.projector.rows import Batch, Rows
from farandole.settings import Settings
from tests import journeys
from tests.journeys import Classified, Log, Noted, Submitted, new_fact

SETTINGS = Settings(_env_file=None, namespace="t")
ID = "01890a5d-ac96-774b-bcce-b302099a8057"
ids = st.sampled_from([ID, "00000000-0000-0000-0000-000000000000", ID.upper(), "", "x" * 36, ID[:-1] + "\0"])
numbers = st.sampled_from([0, 1, 63, 64, 8191, 8192, 2**31 - 2, 2**31 - 1, -1])
texts = st.one_of(
    st.sampled_from(["", "agent 1", "a\0b", "é" * 32, "a" * 63, "a" * 64, "a" * 9000]), st.text(max_size=5)
)
envelopes = st.fixed_dictionaries(
    {},
    optional={
        "event_id": ids,
        "trace_id": ids,
        "causation_id": st.none() | ids,
        "occurred_at": st.sampled_from([0, -1, 2**48, 2**48 + 1, 2**52 - 1, 2**52, 2**62]),
        "emitted_by": texts,
        "run": numbers,
        "hop": numbers,
        "attempt": numbers,
        "scope_id": st.none() | ids,
        "part": st.none() | numbers,
        "parts": st.none() | numbers,
        "tenant": st.none() | texts,
    },
)


@pytest.fixture
def log() -> Log:
    return Log(SETTINGS)


def batch(records: list[Record]) -> Batch:
    return Rows(journeys.schemas(SETTINGS), SETTINGS).batch(records)


def carefully(records: list[Record]) -> Batch:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_quickly", lambda _record, _meaning: None)
        patch.setattr(body, "_quickly", lambda _payload: None)
        return batch(records)


@given(changed=st.lists(envelopes, min_size=1, max_size=5), said=st.text(max_size=9))
def test_an_event_gives_the_same_row_whatever_its_envelope_holds(changed: list[dict[str, Any]], said: str) -> None:
    log, records = Log(SETTINGS), []
    events: list[type[Event]] = [Submitted, Noted, Classified]
    for event, fields in zip(events * 2, changed, strict=False):
        records.append(_record(log, event, new_fact(event).fields | fields, said))
    assert batch(records) == carefully(records)


def _record(log: Log, event: type[Event], fields: dict[str, Any], text: str) -> Record:
    """Written as a stranger may, who checks nothing: no contract of ours would."""
    value = io.BytesIO()
    written = codec.contract(event, SETTINGS.flow)
    payload = {"text": text} | ({"score": 0.5} if event is Classified else {})
    fastavro.schemaless_writer(value, written.writer.parsed, fields | payload)
    return log.put(event.__event__.topic, 0, written.header + value.getvalue(), b"key")


def test_a_count_below_zero_is_parked_however_much_its_bytes_look_like_an_ordinary_event(log: Log) -> None:
    strange = new_fact(Submitted).fields | {"parts": -64, "tenant": ""}
    (parked,) = batch([_record(log, Submitted, strange, "hello")]).parked
    assert parked.error.startswith("envelope field parts: expected 0 to")


def test_an_ordinary_event_is_read_quickly(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_fact(Submitted, tenant="acme")
    records = [log.append(fact.event, fact.fields) for fact in (first, new_fact(Noted, cause=first))]
    monkeypatch.delattr(rows, "decode")
    assert len(batch(records).rows) == 2


def test_bytes_that_are_no_event_are_parked_with_the_same_words(log: Log) -> None:
    """Every byte behind the schema's turned over or missing (case P9)."""
    sound = log.append(Submitted, new_fact(Submitted, tenant="acme").fields, text="hi").value or b""
    broken = [sound[:end] for end in range(10, len(sound))]
    broken += [
        sound[:at] + bytes((sound[at] ^ bits,)) + sound[at + 1 :] for at in range(10, len(sound)) for bits in (1, 129)
    ]
    records = [log.put("jobs.submitted", 0, value) for value in [*broken, sound + b"\0", sound]]
    made = batch(records)
    assert made == carefully(records)
    assert len(made.parked) > len(sound)


def _parts(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner) | st.dictionaries(st.text(), inner)


@given(st.recursive(st.text() | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.none(), _parts, max_leaves=9))
def test_plain_json_is_the_same_to_the_byte(value: Any) -> None:
    """A hash of it tells whether an event id came with another payload."""
    assert body.jsonb_text({"field": value}, plain=True) == body.jsonb_text({"field": value})


def test_numbers_with_fractions_and_bytes_are_no_plain_json() -> None:
    assert codec.plain_json(codec.contract(Submitted, "jobs").writer)
    assert not codec.plain_json(codec.contract(Classified, "jobs").writer)  # its score
