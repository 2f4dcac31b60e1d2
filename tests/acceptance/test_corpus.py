"""1,500 real mails of 2002 and 2003, odd encodings included, through the command line and four agents to their end."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from agents.rules.refusals import Refusal
from tests.acceptance.checker import complaints
from tests.acceptance.triage import Triage

CHAIN = ["submitted", "classified", "enriched", "acted"]
FOLDERS = {"easy-ham-1", "easy-ham-2", "hard-ham-1", "spam-1", "spam-2"}

#: Row by row, as Postgres writes them.
TABLES = (
    "SELECT job::text FROM job ORDER BY trace_id",
    "SELECT stage_times::text FROM stage_times ORDER BY 1",
    'SELECT event_id, topic, partition, "offset" FROM event_log ORDER BY event_id',
)


@pytest.fixture(scope="module")
def jobs(system: Triage, corpus: Path) -> list[str]:
    """The corpus, submitted and at its end; the jobs' ids."""
    submitted = system.submit_file(corpus)
    system.settle(submitted, 120)
    system.quiet()
    return submitted


def test_the_sample_holds_mails_of_every_folder_and_the_odd_ones(corpus: Path) -> None:
    mails = [json.loads(line) for line in corpus.read_text(encoding="utf-8").split("\n")[:-1]]
    texts = "".join(mail["text"] for mail in mails)
    assert len({mail["message_id"] for mail in mails}) == 1500
    assert {mail["source"] for mail in mails} == FOLDERS
    assert "\N{REPLACEMENT CHARACTER}" in texts
    assert all(letter in texts for letter in "“的の"), "Windows-1252, Big5 or GB2312, ISO-2022-JP"
    assert any(not mail["text"].strip() for mail in mails)


def test_at_least_95_of_100_are_done_and_the_others_failed_for_a_declared_reason(
    system: Triage, jobs: list[str]
) -> None:
    rows = system.rows("SELECT trace_id::text, status, data->'failed'->>'reason', data FROM job_state")
    assert {row[0] for row in rows} == set(jobs)
    ends = Counter(status for _, status, *_ in rows)
    assert ends["done"] >= 0.95 * len(jobs), ends
    assert ends["done"] + ends["failed"] == len(jobs), ends
    reasons = {reason for _, status, reason, _ in rows if status == "failed"}
    assert reasons <= {refusal.value for refusal in Refusal}
    assert {data[stage]["decided_by"] for *_, data in rows for stage in CHAIN[1:]} == {"offline rules"}


def test_every_journey_is_complete_and_in_order(system: Triage, jobs: list[str]) -> None:
    rows = system.rows("SELECT trace_id::text, stage, hop, occurred_at, attempt, causation_id, event_id FROM journey")
    journeys: dict[str, list[tuple[object, ...]]] = {}
    for trace, *row in rows:  # as the view orders them: causes before their effects
        journeys.setdefault(trace, []).append(tuple(row))
    assert journeys.keys() == set(jobs)
    for journey in journeys.values():
        stages, hops, times, attempts, causes, ids = zip(*journey, strict=True)
        assert stages in ((*CHAIN, "done"), (*CHAIN, "failed"))
        assert hops == (0, 1, 2, 3, 4)
        assert list(times) == sorted(times)
        assert set(attempts) == {1}
        assert causes == (None, *ids[:-1])


def test_the_counts_agree_with_the_log_and_its_offsets(system: Triage, jobs: list[str]) -> None:
    taken = system.picture()
    assert complaints(taken) == []
    records = Counter(record.place[0] for record in taken.records)
    rows = Counter(dict(system.rows("SELECT topic, count(*) FROM event_log GROUP BY topic")))
    assert records == rows
    assert [records[f"jobs.{stage}"] for stage in CHAIN] == [len(jobs)] * 4
    assert records["jobs.done"] + records["jobs.failed"] == len(jobs)
    ends = [end for (topic, _), end in taken.standing.ends.items() if topic == "jobs.submitted"]
    assert sum(ends) == len(jobs), "no transaction writes there, so offsets count records"
    assert system.rows("SELECT count(*) FROM conflict") == [(0,)]


def test_the_same_mails_submitted_again_change_nothing(system: Triage, jobs: list[str], corpus: Path) -> None:
    before = tables(system)
    committed = {name: len(system.log.read(f"jobs.{name}")) for name in ("classified", "done", "failed")}
    assert system.submit_file(corpus) == jobs
    system.quiet()
    assert len(system.log.read("jobs.submitted")) == 2 * len(jobs), "they did reach the log"
    assert {name: len(system.log.read(f"jobs.{name}")) for name in committed} == committed
    assert tables(system) == before
    assert system.rows("SELECT count(*) FROM conflict") == [(0,)]
    assert complaints(system.picture()) == []


def tables(system: Triage) -> list[list[tuple[object, ...]]]:
    return [system.rows(query) for query in TABLES]
