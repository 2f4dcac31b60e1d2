"""What an outcome puts on the log, without a broker: dead letters that fit and tell all, limits of topics, trails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farandole import Agent, Event, dead_letter, ids
from farandole.contracts.codec import contract
from farandole.dead_letter import DeadLetter
from farandole.envelope import Coordinates, Emitter, begin
from farandole.errors import ConfigurationError
from farandole.event import JobDeadLettered, JobFailed
from farandole.kafka import Headers, Record
from farandole.outcome import DeadLettered, Emitted, Failed, Skipped
from farandole.settings import Settings, load_settings
from farandole.wake import Wake
from farandole.worker import trail
from farandole.worker.holdings import Held, Item
from farandole.worker.outputs import MAX_RECORD_BYTES, Output, Outputs
from farandole.worker.tracker import Tracker


class Asked(Event, topic="jobs.asked", stage="asked"):
    text: str = ""


class Answered(Event, topic="jobs.answered", stage="answered"):
    text: str


SETTINGS: Settings = load_settings(kafka_bootstrap_servers="127.0.0.1:1", database_url="postgresql://h/d", hop_limit=50)


def outputs(limits: dict[str, int] | None = None, **options: Any) -> Outputs:
    agent = Agent("answer", **options)

    @agent.handle
    def answer(event: Asked) -> Answered:
        return Answered(text=event.text)

    return Outputs(SETTINGS, replace(agent.wiring("jobs"), limits=limits or {}))


def item(*, fields: bool = True, wake: Wake | None = None, hop: int = 0, **parts: Any) -> Item:
    raw = begin(ids.new_trace_id(), Emitter("client"), "jobs.Asked") | {"hop": hop, "run": wake.run if wake else 0}
    given = {"key": b"k", "value": b"v", "headers": [], **parts}
    record = Record("jobs.asked", 0, 7, 1_700_000_000_000, **given)
    return Item(record, Held("jobs.asked", 0, Tracker(0), (0, [])), 7, wake, fields=raw if fields else None)


def decoded(output: Output, event: type[Event]) -> dict[str, Any]:
    from farandole.contracts import codec

    return codec.decode(output.value or b"", contract(event, "jobs").writer)


headers_of_records: Any = st.lists(st.tuples(st.text(max_size=30), st.none() | st.binary(max_size=300)), max_size=5)


@given(
    st.none() | st.binary(max_size=3000), st.none() | st.binary(max_size=3000), headers_of_records,
    st.text(max_size=50), st.integers(1500, 12_000),
)  # fmt: skip
def test_a_dead_letter_fits_and_gives_back_the_record_or_says_that_it_was_cut(
    key: bytes | None, value: bytes | None, headers: Headers, error: str, most: int
) -> None:
    told = DeadLetter("id", "answer", "invalid", error, error, 1, Coordinates("jobs.asked", 3, 7, 1), 2, 3)
    made_key, made_value, made_headers = told.fitted(key, value, headers, most)
    assert dead_letter.size(made_key, made_value, made_headers) <= most
    found, read = dead_letter.unwrap(Record("answer.dead", 0, 0, 0, made_key, made_value, made_headers))
    assert read is not None
    assert replace(read, cut_from_bytes=None) == told
    if read.cut_from_bytes is None:
        kept = [header for header in headers if not header[0].startswith(dead_letter.PREFIX)]
        assert (found.key, found.value, found.headers) == (key, value, kept)
    else:
        assert read.cut_from_bytes == len(value or b"")
        assert (value or b"").startswith(found.value or b"")
        assert dead_letter.size(key, value, [*headers, *told.headers()]) > most


def test_the_letter_and_word_of_it_name_each_other_and_where_the_record_lay() -> None:
    poisoned = item()
    poisoned.outcome = DeadLettered("attempts", "first", 3, "last")
    letter, word = outputs().of(poisoned)
    fields = decoded(word, JobDeadLettered)
    _, told = dead_letter.unwrap(Record("answer.dead", 0, 0, 0, None, letter.value, letter.headers))
    assert told is not None
    assert told.event_id == fields["event_id"]
    assert (told.error, told.last_error, told.attempts) == ("first", "last", 3)
    assert told.origin == Coordinates("jobs.asked", 0, 7, 1_700_000_000_000)
    assert (fields["origin_offset"], fields["error"], fields["attempt"]) == (7, "first", 3)


@pytest.mark.parametrize("fields", [True, False])
def test_a_letter_of_a_redriven_record_has_the_run_of_the_redrive(fields: bool) -> None:
    wake = Wake(Coordinates("jobs.asked", 0, 7, 1_700_000_000_000), seq=0, run=4)
    poisoned = item(fields=fields, wake=wake)
    poisoned.outcome = DeadLettered("rejected", "never")
    letter, word = outputs().of(poisoned)
    assert decoded(word, JobDeadLettered)["run"] == 4
    assert dict(letter.headers)["farandole.dead.run"] == b"4"


def test_an_agent_may_declare_that_a_dead_letter_fails_the_job() -> None:
    poisoned = item()
    poisoned.outcome = DeadLettered("rejected", "never")
    _, word, failed = outputs(if_dead="fail").of(poisoned)
    fields = decoded(failed, JobFailed)
    assert (fields["reason"], fields["detail"]) == ("dead_lettered", "rejected: never")
    assert fields["event_id"] != decoded(word, JobDeadLettered)["event_id"]
    with pytest.raises(ConfigurationError, match="if_dead is 'explode'"):
        outputs(if_dead="explode")
    with pytest.raises(ConfigurationError, match="brake -1"):
        outputs(brake=-1)


@pytest.mark.parametrize(
    ("limits", "bytes_", "fits"),
    [
        ({}, 1_000_000, True),
        ({}, 1_200_000, False),
        ({"jobs.answered": 1_500_000}, 1_200_000, True),
        ({"jobs.answered": 100_000}, 99_500, False),
        ({"jobs.answered": 100_000_000}, 3_000_000, False),
    ],
)
def test_an_output_is_held_to_the_limit_of_its_topic(limits: dict[str, int], bytes_: int, fits: bool) -> None:
    large = item()
    large.outcome = Emitted([Answered(text="x" * bytes_)])
    made = outputs(limits).of(large)
    assert isinstance(large.outcome, Emitted) is fits
    if not fits:
        assert isinstance(large.outcome, DeadLettered)
        assert large.outcome.cause == "too_large"
        assert large.outcome.error.startswith("jobs.Answered has ")
        assert all(output.size <= MAX_RECORD_BYTES for output in made)


def test_the_trail_begins_near_the_limit_and_names_the_latest_agents() -> None:
    headers: Headers = [("own", b"1")]
    for hop in range(1, 51):
        headers = trail.extended(headers, hop, 50, "ping" if hop % 2 else "pong")
        names = [value for name, value in headers if name == trail.TRAIL]
        assert len(names) == (1 if hop >= 50 - trail.NAMES else 0)
    assert headers[0] == ("own", b"1")
    ended = trail.ended(headers, 50, 50, Asked)
    assert isinstance(ended, Failed)
    assert ended.reason == "loop"
    assert ended.detail
    assert "50 handlings" in ended.detail
    assert "ping → pong → ping" in ended.detail
    assert ended.detail.count("p") >= trail.NAMES
    assert trail.ended(headers, 49, 50, Asked) is None


def test_outputs_carry_the_trail_on() -> None:
    late = item(hop=30, headers=[(trail.TRAIL, b"a,b"), ("own", b"1")])
    late.outcome = Emitted([Answered(text="x")])
    (made,) = outputs().of(late)
    assert dict(made.headers)[trail.TRAIL] == b"a,b,answer"
    assert dict(made.headers)["own"] == b"1"


def test_word_of_a_failure_is_handled_beyond_the_limit_but_not_for_ever() -> None:
    assert trail.ended([], 51, 50, JobFailed) is None
    assert trail.ended([], 50 + trail.LAST_WORDS, 50, JobFailed) == Skipped("loop")
    assert isinstance(trail.ended([], 10_000, 50, Asked), Failed)
