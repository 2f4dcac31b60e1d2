"""Jobs that have ended are forgotten by policy, whole or not at all; others never are."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, closing
from datetime import timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest

from farandole import ids, postgres, projections, retention
from farandole.parked import Chosen
from farandole.project import find_project
from farandole.projector.parking import Retry
from farandole.retention import partitions, policy
from farandole.retention.forgetting import Forgotten, forget, preview
from tests.integration.projection_service import make_topics
from tests.integration.projection_tables import jobs as job_state
from tests.integration.projection_tables import one
from tests.integration.retention.old_jobs import NOW, Jobs
from tests.journeys import Blocked, Done, GaveUp, Submitted, new_fact

KEEP = timedelta(days=30)


def carried_out(jobs: Jobs, keep: timedelta = KEEP) -> Forgotten:
    return forget(jobs.settings, jobs.connection, keep, NOW)


def test_a_month_of_ended_jobs_is_dropped_with_their_rows_and_what_keeps_effects_single_stays(jobs: Jobs) -> None:
    # Given two jobs of March, one of them failed and with a conflict, a model's call and an effect; and one of June
    old, failed, young = jobs.job(100), jobs.job(90, Submitted, GaveUp), jobs.job(3)
    event = jobs.connection.execute("SELECT event_id FROM event_log WHERE trace_id = %s", (failed,)).fetchone()
    assert event
    for statement in (
        "INSERT INTO conflict VALUES ('jobs.done', 0, 99, %(event)s, %(job)s, 1)",
        "INSERT INTO budget VALUES ('job/' || %(job)s, 5)",
        "INSERT INTO step (event_id, agent, name, state, trace_id) VALUES (%(event)s, 'mail', 'send', 'done', %(job)s)",
        "INSERT INTO usage (call_id, trace_id, event_id, agent, step, model, outcome)"
        " VALUES (%(event)s, %(job)s, %(event)s, 'mail', 'send', 'm', 'answered')",
    ):
        jobs.connection.execute(statement, {"event": event[0], "job": failed})
    assert jobs.partitions()["event_log_2031_03"] == 4

    # When the policy is carried out, and was looked at before
    seen = preview(jobs.connection, KEEP, NOW)
    done = carried_out(jobs)

    # Then the partition is gone, and the same was foretold
    assert (done.jobs, done.events, done.dropped, done.held) == (2, 4, seen.dropped, [])
    assert (seen.jobs, seen.events) == (2, 4)
    assert "event_log_2031_03" in done.dropped and "event_log_2031_06" not in done.dropped
    assert "event_log_2031_03" not in jobs.partitions()
    assert jobs.left() == {young: 2}
    assert old not in job_state(jobs.connection)
    rows = {
        table: one(jobs.connection, f"SELECT count(*) FROM {table}")
        for table in ("conflict", "budget", "step", "usage")
    }
    assert rows == {"conflict": 0, "budget": 0, "step": 1, "usage": 1}


def test_jobs_that_have_not_ended_stay_keep_their_partition_and_are_named(jobs: Jobs) -> None:
    ended, running, blocked = jobs.job(91), jobs.job(90, Submitted), jobs.job(89, Submitted, Blocked)
    waiting, held, begun_anew = jobs.job(88), jobs.job(87), jobs.job(86)
    jobs.connection.execute(
        'INSERT INTO wait (agent, event_id, run, seq, kind, trace_id, topic, partition, "offset", timestamp_ms, value,'
        " headers, attempts, error) VALUES ('a', %(job)s, 0, 0, 'retry', %(job)s, 't', 0, 0, 0, '', '[]', 1, 'e')",
        {"job": waiting},
    )
    jobs.connection.execute(
        "INSERT INTO step (event_id, agent, name, state, trace_id) VALUES (%(job)s, 'a', 's', 'held', %(job)s)",
        {"job": held},
    )
    jobs.connection.execute("UPDATE job SET outcome = 'failed', run = run + 1 WHERE trace_id = %s", (begun_anew,))
    stays = [running, blocked, waiting, held, begun_anew]
    seen, done = preview(jobs.connection, KEEP, NOW), carried_out(jobs)
    assert jobs.left().keys() == {*stays}
    assert [(one.partition, one.jobs, one.some) for one in done.held] == [("event_log_2031_03", 5, stays)]
    assert "event_log_2031_03" in jobs.partitions() and "event_log_2031_03" not in done.dropped + seen.dropped
    assert done.held == seen.held == policy.read(jobs.connection).held
    assert (done.jobs, ended in jobs.left()) == (1, False)


def test_ids_that_tell_no_time_are_forgotten_job_by_job(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farandole.retention.forgetting.CHUNK", 3)
    old = [jobs.job(31, keyed=True) for _ in range(8)]
    running = jobs.job(400, Submitted, keyed=True)
    young = jobs.job(29, keyed=True)
    strange = str(UUID(int=5, version=4))  # its job is of no time, the ids of its events are of months that stay
    at = NOW - timedelta(days=40)
    jobs.write([new_fact(Done, strange, event_id=ids.trace_id_of_key("jobs", "x", NOW), occurred_at=0)], at)
    done = carried_out(jobs)
    assert jobs.left().keys() == {running, young}
    assert (done.jobs, done.events) == (len(old) + 1, 2 * len(old) + 1)
    assert [held.some for held in done.held] == [[running]]


def test_jobs_of_a_partition_of_a_year_are_forgotten_one_by_one_until_the_year_is_over(jobs: Jobs) -> None:
    now = NOW.replace(year=2040)
    partitions.make_ahead(jobs.connection, now, monthly=False)
    days = (NOW - now).days
    jobs.job(days + 31), jobs.job(days + 1)
    assert jobs.partitions()["event_log_2040"] == 4
    assert forget(jobs.settings, jobs.connection, KEEP, now).jobs == 1
    assert jobs.partitions()["event_log_2040"] == 2
    done = forget(jobs.settings, jobs.connection, KEEP, now.replace(year=2041, month=2))
    assert (done.jobs, done.dropped) == (1, ["event_log_2040"])


def test_a_month_is_kept_until_its_last_day_is_old_enough(jobs: Jobs) -> None:
    job = jobs.job(45)  # May 6th; the month ended nineteen and a half days ago
    assert carried_out(jobs, timedelta(days=20)).jobs == 0
    assert jobs.left() == {job: 2}
    assert carried_out(jobs, timedelta(days=19)).dropped == ["event_log_2031_05"]


def test_a_job_of_which_a_record_came_of_late_stays_whatever_its_emitter_said(jobs: Jobs) -> None:
    late = [jobs.job(90, kafka_days=1), jobs.job(90, kafka_days=1, keyed=True)]
    assert preview(jobs.connection, KEEP, NOW).jobs == carried_out(jobs).jobs == 0
    assert jobs.left().keys() == {*late}


def test_a_job_with_events_in_two_months_keeps_both_or_none(jobs: Jobs) -> None:
    """A stranger's ids need not begin as their job's."""
    trace = ids.trace_id_of_key("jobs", "torn", NOW - timedelta(days=100))
    here, there = new_fact(Submitted, trace, occurred_at=0), new_fact(Done, trace, occurred_at=0)
    there.fields["event_id"] = ids.trace_id_of_key("jobs", "elsewhere", NOW)
    jobs.write([here, there], NOW - timedelta(days=90))
    done = carried_out(jobs)
    assert (jobs.left(), done.jobs, done.events) == ({}, 1, 2)


def test_it_yields_to_projectors_and_to_builds_of_projections(jobs: Jobs) -> None:
    busy, idle = jobs.job(90, keyed=True), jobs.job(90, keyed=True)
    schema = jobs.settings.schema_name
    with postgres.connect(jobs.settings) as other:
        # Given a build that is under way, or was begun and cut off
        with postgres.advisory_lock(other, "projections", schema):
            assert carried_out(jobs).put_off
        other.execute("INSERT INTO projection_build VALUES ('x', '', '', '', '', 'building')")
        assert carried_out(jobs).put_off
        assert jobs.left().keys() == {busy, idle}
        other.execute("DELETE FROM projection_build")

        # And a batch that is at one of the jobs
        with other.transaction():
            other.execute("UPDATE job SET attempts = attempts WHERE trace_id = %s", (busy,))
            assert carried_out(jobs).jobs == 1
    assert jobs.left().keys() == {busy}


def test_what_is_left_is_what_a_refold_of_job_state_makes_of_the_log(jobs: Jobs) -> None:
    assert not retention.forgot_anything(jobs.connection)
    for days in (100, 90, 60, 31, 3):
        jobs.job(days)
        jobs.job(days, Submitted, Blocked)
        jobs.job(days, keyed=True)
    carried_out(jobs)
    before = job_state(jobs.connection)
    projections.refold(jobs.settings, projections.discover(find_project()), "job_state")
    assert job_state(jobs.connection) == before and 0 < len(before) < 15
    assert retention.forgot_anything(jobs.connection)


class TestRecordsThatComeAgain:
    def test_those_of_forgotten_jobs_are_parked_and_all_others_are_what_they_were(self, jobs: Jobs) -> None:
        forgotten, kept = jobs.job(90), jobs.job(90, Submitted, Blocked)
        carried_out(jobs)

        # When a job is new, however old its records say they are: after an outage, or where a producer gives them times
        new = jobs.job(80)
        assert jobs.left() == {kept: 2, new: 2}

        # And the position is moved back, and in one batch all come again, with another new one
        jobs.connection.execute("UPDATE projector_offset SET next_offset = 0")
        fresh = new_fact(Submitted)
        jobs.fold([*jobs.records, jobs.log.append(Submitted, fresh.fields)])

        # Then the records of the forgotten one are parked, each once, and nothing else changes
        parked = jobs.connection.execute(
            "SELECT DISTINCT trace_id::text, cause, count(*) OVER () FROM parked"
        ).fetchall()
        assert parked == [(forgotten, "expired", 2)]
        assert jobs.left() == {kept: 2, new: 2, fresh.fields["trace_id"]: 1}

    def test_they_stay_parked_when_all_is_retried_unless_they_are_asked_for(self, jobs: Jobs) -> None:
        """They were folded once: projections that add up would count them again."""
        make_topics(jobs.settings)
        forgotten = jobs.job(90)
        carried_out(jobs)
        jobs.connection.execute("UPDATE projector_offset SET next_offset = 0")
        jobs.fold(jobs.records)
        retry = Retry(jobs.settings)
        with closing(retry):
            (done,) = retry.run(jobs.connection, Chosen())
            assert (done.new, done.left, jobs.left()) == (0, Counter(expired=2), {})
            (done,) = retry.run(jobs.connection, Chosen(cause="expired"))
            assert (done.new, jobs.left()) == (2, {forgotten: 2})

    def test_a_topic_that_was_copied_brings_nothing_back(self, jobs: Jobs) -> None:
        """Offsets begin anew, under another topic's id; Kafka's timestamps are those of before."""
        jobs.connection.execute(
            "INSERT INTO projector_offset (topic, partition, topic_id) VALUES ('jobs.submitted', 0, 'one')"
        )
        jobs.job(90, Submitted)
        jobs.job(90, Submitted, GaveUp)
        jobs.connection.execute("UPDATE job SET outcome = 'done'")
        carried_out(jobs)
        jobs.connection.execute("UPDATE projector_offset SET topic_id = 'two'")
        new = jobs.job(1, Submitted)
        jobs.records = [record for record in jobs.records if record.topic.endswith("submitted")][:2]
        jobs.log.ends.clear()
        copies = [
            type(record)(record.topic, 0, 500 + number, record.timestamp_ms, record.key, record.value, [])
            for number, record in enumerate(jobs.records)
        ]
        jobs.fold(copies)
        assert jobs.left() == {new: 1}
        assert one(jobs.connection, "SELECT count(*) FROM parked WHERE cause = 'expired'") == 2


def test_a_projector_that_only_looks_for_builds_puts_nothing_off(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.job(60)
    with ExitStack() as looking, postgres.connect(jobs.settings) as other:
        lock = postgres.try_advisory_lock(other, "projections", jobs.settings.schema_name)
        assert looking.enter_context(lock)
        monkeypatch.setattr("farandole.retention.forgetting.time", SimpleNamespace(sleep=lambda _: looking.close()))
        done = carried_out(jobs)
    assert (done.put_off, done.jobs) == (None, 1)
