"""How an attempt ends, seen on the log: outputs with their lineage, failures, dead letters; for every kind of handler."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import fastavro
import pytest

from farandole import ids
from farandole.avro import derive
from farandole.codec import contract
from farandole.envelope import Emitter, begin
from tests.eventually import eventually
from tests.integration.worker.conftest import Stage
from tests.integration.worker.words import Heard, Murmured

KINDS = ["echo", "echo_plain", "echo_inline"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_emits_none_one_or_many_events_and_each_names_its_cause(stage: Stage, kind: str) -> None:
    with stage.agent(kind):
        one, _, many = stage.submit([("one", ""), ("none", "none"), ("many", "many:3")])
        eventually(lambda: stage.caught_up(kind), "everything handled")
    heard = {fields["word"]: fields for fields in stage.log.fields("jobs.heard")}
    said = stage.log.read("jobs.said")
    assert sorted((record.fields["word"], record.fields["place"]) for record in said) == [
        ("many", 0), ("many", 1), ("many", 2), ("one", 0),
    ]
    for record in said:
        cause, found = heard[record.fields["word"]], record.fields
        assert record.key == str(found["trace_id"]).encode()
        assert str(found["trace_id"]) in (one, many)
        assert (found["causation_id"], found["hop"], found["run"], found["attempt"]) == (cause["event_id"], 1, 0, 1)
        assert found["emitted_by"] == kind
        assert str(found["event_id"])[:13] == str(found["trace_id"])[:13], "the id copies the job's first 48 bits"
        assert str(found["event_id"])[14] == "8"
    assert len({record.fields["event_id"] for record in said}) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_each_way_to_fail_ends_on_its_topic_and_the_next_event_is_handled(stage: Stage, kind: str) -> None:
    plans = {
        "boom": "boom", "reject": "reject", "tired": "fail:tired", "unlisted": "fail:bored", "flaky": "flaky:2",
        "again": "retry", "large": "large", "fine": "",
    }
    with stage.agent(kind):
        stage.submit(plans.items())
        eventually(lambda: stage.caught_up(kind), "everything handled")
    assert {(f["word"], f["attempt"]) for f in stage.log.fields("jobs.said")} == {("flaky", 3), ("again", 2), ("fine", 1)}
    assert [(f["reason"], f["detail"], f["agent"]) for f in stage.log.fields("jobs.failed")] == [("tired", "said so", kind)]
    dead = {record.fields["word"]: record for record in stage.log.read(f"{kind}.dead")}
    causes = {word: (record.header("farandole.dead.cause"), record.header("farandole.dead.attempts")) for word, record in dead.items()}
    assert causes == {
        "boom": ("attempts", "3"), "reject": ("rejected", "1"), "unlisted": ("wrong_output", "1"), "large": ("too_large", "1"),
    }
    assert dead["boom"].header("farandole.dead.error") == "ValueError: attempt 1 cannot say 'boom'", "the first cause, not the last"
    told = {f["cause"]: f for f in stage.log.fields("jobs.dead_lettered")}
    assert set(told) == {"attempts", "rejected", "wrong_output", "too_large"}
    origin = told["attempts"]
    assert dead["boom"].header("farandole.dead.offset") == str(origin["origin_offset"])
    assert (origin["origin_topic"], origin["dead_letter_topic"]) == ("jobs.heard", f"{kind}.dead")


def test_bytes_that_are_no_event_lie_raw_in_the_dead_letters_and_the_next_record_is_handled(stage: Stage) -> None:
    """Cases K4 and K10: empty, one NUL, JSON text, another schema's bytes, the year 10000, no value, no key, an empty key."""
    made = contract(Heard, "jobs")
    good = _encoded("good")
    future = begin(ids.new_trace_id(), Emitter("client"), made.writer.name) | {"occurred_at": 253_402_300_800_000_000}
    trailing, unknown = good + b"\0", good[:2] + b"12345678" + good[10:]
    foreign = good[:10] + b"\x02\x04ab"
    bad: list[tuple[bytes | None, bytes | None]] = [
        (b"k1", b""), (b"k2", b"\x00"), (b"k3", b'{"word": "json"}'), (b"k4", foreign), (b"k5", trailing), (b"k6", unknown),
        (b"k7", made.encode(future, Heard(word="later"))), (b"k8", None), (None, b"no key"), (b"", b"empty key"), (None, None),
    ]
    with stage.agent():
        stage.log.write("jobs.heard", bad, partition=0, headers=[("origin", b"\xff")])
        stage.log.write("jobs.heard", [(b"k9", good)], partition=0)
        eventually(stage.caught_up, "everything handled")
    dead = stage.log.read("echo.dead")
    assert [(record.key, record.value) for record in dead] == bad, "raw keys and values, in the order of the log"
    assert all(record.headers[0] == ("origin", b"\xff") for record in dead)
    causes = [record.header("farandole.dead.cause") for record in dead]
    assert causes == [
        "empty", "undecodable", "undecodable", "undecodable", "undecodable", "unknown_schema", "invalid", "empty", "undecodable",
        "undecodable", "empty",
    ]
    assert "31 32 33" not in dead[5].header("farandole.dead.error")
    assert b"12345678".hex() in dead[5].header("farandole.dead.error"), "the unknown fingerprint is named"
    assert len(stage.log.fields("jobs.dead_lettered")) == len(bad)
    assert stage.said() == ["good"]


def test_headers_pass_through_unchanged_the_odd_ones_too(stage: Stage) -> None:
    """Case K9: no headers, a header without a value, a value that is no text, the same name twice."""
    odd: list[tuple[str, bytes | None]] = [("a", None), ("a", b"\xff"), ("", b"x"), ("traceparent", b"00-foreign")]
    with stage.agent():
        stage.log.write("jobs.heard", [(b"k1", _encoded("odd"))], headers=odd)
        stage.log.write("jobs.heard", [(b"k2", _encoded("none"))])
        eventually(lambda: len(stage.said()) == 2, "both handled")
    said = {record.fields["word"]: record for record in stage.log.read("jobs.said")}
    assert said["odd"].headers[:-1] == odd[:3]
    for record in said.values():
        trace, span = record.fields["trace_id"].hex, record.fields["event_id"].hex[16:]
        assert record.headers[-1] == ("traceparent", f"00-{trace}-{span}-01".encode())
    assert len(said["none"].headers) == 1


def test_types_of_the_topic_that_the_agent_does_not_read_are_passed_over(stage: Stage) -> None:
    with stage.agent():
        made = contract(Murmured, "jobs")
        raw = begin(ids.new_trace_id(), Emitter("client"), made.writer.name)
        stage.log.write("farandole.schemas", [(made.writer.fingerprint.hex(), json.dumps(made.writer.schema).encode())])
        stage.log.write("jobs.heard", [(b"k", made.encode(raw, Murmured(word="psst")))])
        stage.submit([("aloud", "")])
        eventually(stage.caught_up, "everything handled")
    assert stage.said() == ["aloud"]
    assert stage.log.read("echo.dead") == []


def test_a_stranger_needs_only_the_payload_and_a_key(stage: Stage) -> None:
    """Written with fastavro alone; the business key names the same job that `submit --key` would name."""
    schema: Any = derive(Heard, "jobs", envelope=False)
    print_of = fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(schema), "CRC-64-AVRO")
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"word": "hello", "plan": ""})
    value = b"\xc3\x01" + bytes.fromhex(print_of) + out.getvalue()
    with stage.agent():
        stage.log.write("jobs.heard", [(b"order-7", value)])
        (found,) = eventually(lambda: stage.log.fields("jobs.said"), "the stranger's word said")
    assert str(found["trace_id"]) == ids.trace_id_of_key("jobs", "order-7")
    assert (found["word"], found["hop"]) == ("hello", 1)


def _encoded(word: str, plan: str = "") -> bytes:
    made = contract(Heard, "jobs")
    return made.encode(begin(ids.trace_id_of_key("jobs", word), Emitter("client"), made.writer.name), Heard(word=word, plan=plan))
