"""Ids and lineage: derived, the same again for the same causes, and different as soon as anything differs."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farandole import ids
from farandole.envelope import Coordinates, Emitter, Envelope, begin, check, complete, follow, key_of, left_empty
from farandole.errors import Poison

CAUSE = begin("01890a5d-ac96-774b-bcce-b302099a8057", Emitter("client"), "jobs.Asked")
NAMES = st.text(st.characters(codec="ascii", categories=["Ll", "Nd"]), min_size=1, max_size=12)


@given(NAMES, st.integers(0, 9), NAMES, st.integers(0, 99))
def test_the_same_handling_gives_the_same_id_and_any_other_gives_another(
    agent: str, run: int, kind: str, place: int
) -> None:
    trace = CAUSE["trace_id"]
    found = ids.event_id(trace, [CAUSE["event_id"]], agent, run, kind, place)
    assert found == ids.event_id(trace, [CAUSE["event_id"]], agent, run, kind, place)
    others = {
        ids.event_id(trace, [CAUSE["trace_id"]], agent, run, kind, place),
        ids.event_id(trace, [CAUSE["event_id"]], agent + "x", run, kind, place),
        ids.event_id(trace, [CAUSE["event_id"]], agent, run + 1, kind, place),
        ids.event_id(trace, [CAUSE["event_id"]], agent, run, kind + "x", place),
        ids.event_id(trace, [CAUSE["event_id"]], agent, run, kind, place + 1),
    }
    assert found not in others
    assert len(others) == 5


@given(st.uuids(), st.text(max_size=20))
def test_every_id_is_a_valid_uuid_with_the_48_bits_of_its_job(trace: UUID, key: str) -> None:
    derived = ids.trace_id_of_key("jobs", key)
    for text in (derived, ids.event_id(str(trace), ["a"], key, 0, "t", 0), ids.trace_id_of_record("t", 0, 1, 2)):
        found = UUID(text)
        assert (str(found), found.version, found.variant) == (text, 8, "specified in RFC 4122")
        assert ids.is_id(text)
    assert ids.event_id(str(trace), ["a"], key, 0, "t", 0)[:13] == str(trace)[:13]


def test_fresh_trace_ids_are_uuid7_and_never_alike() -> None:
    found = [UUID(ids.new_trace_id()) for _ in range(1000)]
    assert {uuid.version for uuid in found} == {7}
    assert len(set(found)) == 1000
    assert abs((found[0].int >> 80) / 1000 - datetime.now(UTC).timestamp()) < 60


def test_a_business_key_is_one_job_for_ever() -> None:
    """Ids are on disk for years: this value must never change."""
    assert ids.trace_id_of_key("jobs", "order-7") == "b1e65aef-1d03-882f-860a-5d3d84801b59"
    assert ids.trace_id_of_key("jobs", "order-7") != ids.trace_id_of_key("jobs", "order-7", tenant="a")
    assert ids.trace_id_of_key("jobs", "order-7") != ids.trace_id_of_key("mails", "order-7")


def test_a_business_time_leads_the_id_and_is_the_same_instant_in_every_zone() -> None:
    """Case S1: a naive time is refused, whatever the machine's time zone."""
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    tokyo = at.astimezone(timezone(timedelta(hours=9)))
    assert ids.trace_id_of_key("jobs", "k", at) == ids.trace_id_of_key("jobs", "k", tokyo)
    assert UUID(ids.trace_id_of_key("jobs", "k", at)).int >> 80 == int(at.timestamp() * 1000)
    with pytest.raises(ValueError, match="naive"):
        ids.trace_id_of_key("jobs", "k", at.replace(tzinfo=None))


def test_ids_do_not_depend_on_the_process() -> None:
    code = (
        "from farandole import ids; print(ids.event_id('01890a5d-ac96-774b-bcce-b302099a8057', ['c'], 'a', 0, 't', 1))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "TZ": zone}, capture_output=True, check=True
        ).stdout
        for seed, zone in (("1", "Asia/Tokyo"), ("2", "UTC"))
    }
    assert len(runs) == 1


def test_lineage_passes_on_job_run_tenant_and_scope_and_counts_the_hops() -> None:
    cause = begin(ids.new_trace_id(), Emitter("client"), "jobs.Asked", tenant="acme") | {"run": 2, "hop": 4}
    found = follow([cause], Emitter("answer", "1.2"), "jobs.Answered", 0, attempt=3)
    kept = ("trace_id", "run", "tenant", "scope_id", "part", "parts")
    assert {name: found[name] for name in kept} == {name: cause[name] for name in kept}
    assert (found["causation_id"], found["hop"], found["attempt"]) == (cause["event_id"], 5, 3)
    assert found["emitted_by"] == "answer 1.2"
    other_version = follow([cause], Emitter("answer", "2.0"), "jobs.Answered", 0)
    assert other_version["event_id"] == found["event_id"], "a version is never part of an id"


def test_several_causes_give_the_largest_hop_and_run_and_name_the_last() -> None:
    first, last = CAUSE | {"hop": 7, "run": 1}, CAUSE | {"event_id": ids.new_trace_id(), "hop": 3}
    found = follow([first, last], Emitter("join"), "jobs.Joined", 0)
    assert (found["hop"], found["run"], found["causation_id"]) == (8, 1, last["event_id"])


def test_the_key_is_the_job_and_of_a_part_its_scope_and_place() -> None:
    assert key_of(CAUSE) == CAUSE["trace_id"]
    assert key_of(CAUSE | {"scope_id": "s", "part": 2, "parts": 3}) == "s.2"


def test_a_strangers_record_is_completed_the_same_way_each_time_it_is_read() -> None:
    at = Coordinates("jobs.asked", 3, 42, 1_700_000_000_000)
    first: dict[str, object] = {"tenant": "acme"}
    again: dict[str, object] = {"tenant": "acme"}
    complete(first, at, b"order-7", "jobs.Asked", "jobs")
    complete(again, at, b"order-7", "jobs.Asked", "jobs")
    assert first == again
    assert (first["trace_id"], first["tenant"]) == (ids.trace_id_of_key("jobs", "order-7"), "acme")
    assert Envelope(first).occurred_at == datetime.fromtimestamp(1_700_000_000, UTC)
    check(first)
    elsewhere: dict[str, object] = {}
    complete(elsewhere, Coordinates("jobs.asked", 3, 43, 1_700_000_000_000), b"order-7", "jobs.Asked", "jobs")
    assert elsewhere["event_id"] != first["event_id"]


@pytest.mark.parametrize("nothing", ["00000000-0000-0000-0000-000000000000", "", None])
def test_an_envelope_left_empty_is_completed_and_one_that_was_told_stays(nothing: str | None) -> None:
    at = Coordinates("jobs.asked", 3, 42, 1_700_000_000_000)
    empty: dict[str, object] = {"event_id": nothing, "trace_id": nothing, "occurred_at": 0, "emitted_by": ""}
    lacking: dict[str, object] = {}
    assert left_empty(empty)
    for fields in (empty, lacking):
        complete(fields, at, b"order-7", "jobs.Asked", "jobs")
    assert empty == lacking
    assert not left_empty(empty)
    told: dict[str, object] = {
        "event_id": nothing,
        "trace_id": CAUSE["trace_id"],
        "occurred_at": 1,
        "emitted_by": "shop",
    }
    assert left_empty(told)
    complete(told, at, b"order-7", "jobs.Asked", "jobs")
    assert (told["trace_id"], told["occurred_at"], told["emitted_by"]) == (CAUSE["trace_id"], 1, "shop")


@pytest.mark.parametrize("key", [None, b"", b"\xff\xfe", b"plain", CAUSE["trace_id"].encode()])
def test_any_key_names_a_job(key: bytes | None) -> None:
    def job(offset: int) -> object:
        fields: dict[str, object] = {}
        complete(fields, Coordinates("t", 0, offset, 0), key, "jobs.Asked", "jobs")
        check(fields)
        return fields["trace_id"]

    assert job(0) == job(0)
    assert (job(0) == job(1)) is bool(key), "a key names one job, wherever it lies; without one each record is a job"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("event_id", "nope"),
        ("event_id", CAUSE["event_id"].upper()),
        ("trace_id", ""),
        ("causation_id", "x" * 36),
        ("scope_id", ""),
        ("occurred_at", 253_402_300_800_000_000),
        ("occurred_at", -(2**63)),
        ("run", -1),
        ("run", 2**40),
        ("part", 2**31),
        ("hop", -5),
    ],
)
def test_an_envelope_that_no_tool_downstream_could_hold_is_poison_and_names_the_field(
    field: str, value: object
) -> None:
    with pytest.raises(Poison, match=f"envelope field {field}"):
        check(CAUSE | {field: value})
