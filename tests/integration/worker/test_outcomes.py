"""How an attempt ends, seen on the log: outputs with their lineage, failures, dead letters; for every kind of handler."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict
from io import BytesIO
from typing import Any

import fastavro
import pytest

from farandole import ids
from farandole.contracts import framing
from farandole.contracts.codec import contract
from farandole.contracts.deriving import derive
from farandole.envelope import Emitter, begin
from farandole.settings import load_settings
from farandole.stack.status import Endpoints
from tests.eventually import eventually
from tests.integration.worker.conftest import Stage
from tests.integration.worker.words import Heard, Murmured
from tests.kafka_log import Logged

KINDS = ["echo", "echo_plain", "echo_cpu", "echo_inline"]


@pytest.fixture(scope="module")
def stage(farandole_stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """All three agents read one topic, in one process, for all tests here: each test has its own words."""
    settings = load_settings(**asdict(farandole_stack), namespace=f"t{secrets.token_hex(3)}")
    stage = Stage(settings, tmp_path_factory.mktemp("outcomes"))
    with stage.agent(*KINDS):
        yield stage


def said(stage: Stage, kind: str, *words: str) -> list[Logged]:
    """What `kind` made of these words, once everything is handled."""
    eventually(lambda: stage.caught_up(kind), f"everything handled by {kind}")
    records = stage.log.read("jobs.said")
    return [r for r in records if r.fields["emitted_by"] == kind and r.fields["word"] in words]


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_emits_none_one_or_many_events_and_each_names_its_cause(stage: Stage, kind: str) -> None:
    trace_ids = stage.submit([(f"one {kind}", ""), (f"none {kind}", "none"), (f"many {kind}", "many:3")])
    found = said(stage, kind, f"one {kind}", f"none {kind}", f"many {kind}")
    assert sorted((record.fields["word"], record.fields["place"]) for record in found) == [
        (f"many {kind}", 0),
        (f"many {kind}", 1),
        (f"many {kind}", 2),
        (f"one {kind}", 0),
    ]
    heard = {fields["word"]: fields for fields in stage.log.fields("jobs.heard")}
    for record in found:
        cause, fields = heard[record.fields["word"]], record.fields
        assert record.key == str(fields["trace_id"]).encode()
        assert str(fields["trace_id"]) in trace_ids
        assert (fields["causation_id"], fields["hop"], fields["run"], fields["attempt"]) == (cause["event_id"], 1, 0, 1)
        assert str(fields["event_id"])[:13] == str(fields["trace_id"])[:13], "the id copies the job's first 48 bits"
        assert str(fields["event_id"])[14] == "8"
    assert len({record.fields["event_id"] for record in found}) == 4


def test_each_way_to_fail_ends_on_its_topic_and_the_next_event_is_handled(stage: Stage) -> None:
    plans = {
        "boom": "boom",
        "reject": "reject",
        "tired": "fail:tired",
        "unlisted": "fail:bored",
        "flaky": "flaky:2",
        "again": "retry",
        "large": "large",
        "fine": "",
    }
    stage.submit(plans.items())
    for kind in KINDS:
        found = said(stage, kind, *plans)
        assert {(r.fields["word"], r.fields["attempt"]) for r in found} == {("flaky", 3), ("again", 2), ("fine", 1)}
        failed = [f for f in stage.log.fields("jobs.failed") if f["agent"] == kind]
        assert [(f["reason"], f["detail"]) for f in failed] == [("tired", "said so")]
        dead = {record.fields["word"]: record for record in stage.log.read(f"{kind}.dead")}
        causes = {w: (r.header("farandole.dead.cause"), r.header("farandole.dead.attempts")) for w, r in dead.items()}
        assert causes == {
            "boom": ("attempts", "3"),
            "reject": ("rejected", "1"),
            "unlisted": ("wrong_output", "1"),
            "large": ("too_large", "1"),
        }
        first = dead["boom"].header("farandole.dead.error")
        assert first.startswith("ValueError: attempt 1 cannot say 'boom' (plans.py:"), "the first cause, and its place"
        told = {f["cause"]: f for f in stage.log.fields("jobs.dead_lettered") if f["agent"] == kind}
        assert set(told) == {"attempts", "rejected", "wrong_output", "too_large"}
        origin = told["attempts"]
        assert dead["boom"].header("farandole.dead.offset") == str(origin["origin_offset"])
        assert (origin["origin_topic"], origin["dead_letter_topic"]) == ("jobs.heard", f"{kind}.dead")


def test_bytes_that_are_no_event_lie_raw_in_the_dead_letters_and_the_next_record_is_handled(stage: Stage) -> None:
    """Cases K4 and K10: empty, one NUL, JSON text, another schema's bytes, an id where no registry is set, the year 10000;
    no value, no key, an empty key."""
    made = contract(Heard, "jobs")
    good = _encoded("good")
    future = begin(ids.new_trace_id(), Emitter("client"), made.writer.name) | {"occurred_at": 253_402_300_800_000_000}
    trailing, unknown = good + b"\0", good[:2] + b"12345678" + good[10:]
    foreign = good[:10] + b"\x02\x04ab"
    bad: list[tuple[bytes | None, bytes | None]] = [
        (b"k1", b""),
        (b"k2", b"\x00"),
        (b"k3", b'{"word": "json"}'),
        (b"k4", foreign),
        (b"k5", trailing),
        (b"k6", unknown),
        (b"k7", made.encode(future, Heard(word="later"))),
        (b"k8", None),
        (None, b"no key"),
        (b"", b"empty key"),
        (None, None),
        (b"k10", framing.confluent(999_999) + good[10:]),
    ]
    stage.log.write("jobs.heard", bad, partition=0, headers=[("origin", b"\xff")])
    stage.log.write("jobs.heard", [(b"k9", good)], partition=0)
    assert len(said(stage, "echo", "good")) == 1
    dead = [record for record in stage.log.read("echo.dead") if record.headers[0][0] == "origin"]
    assert [(record.key, record.value) for record in dead] == bad, "raw keys and values, in the order of the log"
    assert all(record.headers[0] == ("origin", b"\xff") for record in dead)
    causes = [record.header("farandole.dead.cause") for record in dead]
    assert causes == [
        "empty",
        "undecodable",
        "undecodable",
        "undecodable",
        "undecodable",
        "unknown_schema",
        "invalid",
        "empty",
        "undecodable",
        "undecodable",
        "empty",
        "unknown_schema",
    ]
    assert "31 32 33" not in dead[5].header("farandole.dead.error")
    assert b"12345678".hex() in dead[5].header("farandole.dead.error"), "the unknown fingerprint is named"
    assert "id 999999, and SCHEMA_REGISTRY_URL is not set" in dead[-1].header("farandole.dead.error")
    places = {record.header("farandole.dead.offset") for record in dead}
    told = [f for f in stage.log.fields("jobs.dead_lettered") if f["agent"] == "echo" and f["origin_partition"] == 0]
    assert places <= {str(fields["origin_offset"]) for fields in told}


def test_headers_pass_through_unchanged_the_odd_ones_too(stage: Stage) -> None:
    """Case K9: no headers, a header without a value, a value that is no text, the same name twice."""
    odd: list[tuple[str, bytes | None]] = [("a", None), ("a", b"\xff"), ("", b"x"), ("traceparent", b"00-foreign")]
    stage.log.write("jobs.heard", [(b"k1", _encoded("odd"))], headers=odd)
    stage.log.write("jobs.heard", [(b"k2", _encoded("plain"))])
    found = {record.fields["word"]: record for record in said(stage, "echo", "odd", "plain")}
    assert found["odd"].headers[:-1] == odd[:3]
    for record in found.values():
        trace, span = record.fields["trace_id"].hex, record.fields["event_id"].hex[16:]
        assert record.headers[-1] == ("traceparent", f"00-{trace}-{span}-01".encode())
    assert len(found["plain"].headers) == 1


def test_types_of_the_topic_that_the_agent_does_not_read_are_passed_over(stage: Stage) -> None:
    made = contract(Murmured, "jobs")
    raw = begin(ids.new_trace_id(), Emitter("client"), made.writer.name)
    value = made.encode(raw, Murmured(word="psst"))
    stage.log.write("farandole.schemas", [(made.writer.fingerprint.hex(), json.dumps(made.writer.schema).encode())])
    stage.log.write("jobs.heard", [(b"k", value)])
    assert said(stage, "echo", "psst") == []
    assert value not in [record.value for record in stage.log.read("echo.dead")]


def test_a_stranger_needs_only_the_payload_and_a_key(stage: Stage) -> None:
    """Written with fastavro alone; the business key names the same job that `submit --key` would name."""
    schema: Any = derive(Heard, "jobs", envelope=False)
    print_of = fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(schema), "CRC-64-AVRO")
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"word": "hello", "plan": ""})
    value = b"\xc3\x01" + bytes.fromhex(print_of) + out.getvalue()
    stage.log.write("jobs.heard", [(b"order-7", value)])
    found = said(stage, "echo", "hello")[0].fields
    assert str(found["trace_id"]) == ids.trace_id_of_key("jobs", "order-7")
    assert (found["word"], found["hop"]) == ("hello", 1)


def _encoded(word: str, plan: str = "") -> bytes:
    made = contract(Heard, "jobs")
    return made.encode(
        begin(ids.trace_id_of_key("jobs", word), Emitter("client"), made.writer.name), Heard(word=word, plan=plan)
    )
