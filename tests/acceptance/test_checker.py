"""The checker bites: of a picture in which all is well it says nothing, of each damage done to it, what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from farandole import migrate, projections
from farandole.project import find_project
from farandole.settings import Settings
from tests import oracle
from tests.acceptance.checker import DEAD_LETTERED, FAILED, TRIAGE, complaints
from tests.acceptance.picture import DeadLetter, LogRow, Picture, Seen, Standing, connect
from tests.acceptance.watch import Watch
from tests.kafka_log import KafkaLog

#: By type: topic, agent, stage, what it makes of the job.
TYPES: dict[str, tuple[str, str, str | None, str | None]] = {
    "jobs.Submitted": ("jobs.submitted", "client", "submitted", None),
    "jobs.Classified": ("jobs.classified", "classify", "classified", None),
    "jobs.Enriched": ("jobs.enriched", "enrich", "enriched", None),
    "jobs.Acted": ("jobs.acted", "act", "acted", None),
    "jobs.Done": ("jobs.done", "confirm", "done", "done"),
    FAILED: ("jobs.failed", "confirm", "failed", "failed"),
    DEAD_LETTERED: ("jobs.dead_lettered", "enrich", None, "blocked"),
}
CHAIN = tuple(TYPES)[:4]
WAYS = ((*CHAIN, "jobs.Done"), (*CHAIN, FAILED), (*CHAIN[:2], DEAD_LETTERED))


def seen(type_name: str, job: int, hop: int, offset: int, **payload: Any) -> Seen:
    """The record of a job's event: its ids say which job and hop it is."""
    topic, agent, stage, outcome = TYPES[type_name]
    schema: dict[str, Any] = {"namespace": "jobs", "name": type_name.removeprefix("jobs."), "stage": stage}
    schema |= {"blocks": True} if outcome == "blocked" else {"terminal": outcome}
    fields = {
        "event_id": f"event-{job}-{hop}", "trace_id": f"job-{job}", "causation_id": f"event-{job}-{hop - 1}" if hop else None,
        "occurred_at": 1_000_000 * hop + job, "emitted_by": f"{agent} 1", "run": 0, "hop": hop, "attempt": 1, **payload,
    }  # fmt: skip
    return Seen((topic, 0, offset), f"job-{job}".encode(), f"{job} {hop}".encode(), fields, schema)


def healthy() -> Picture:
    """Three jobs: one done, one failed, one blocked at its second hop; and garbage, parked and dead-lettered."""
    records = [Seen(("jobs.submitted", 0, 3), None, b"garbage", None, {})]
    for job, way in enumerate(WAYS):
        for hop, name in enumerate(way):
            origin = {"agent": "enrich", "origin_topic": "jobs.classified", "origin_partition": 0, "origin_offset": job}
            records.append(seen(name, job, hop, job, **(origin if name == DEAD_LETTERED else {})))
    events = [record for record in records if record.fields]
    poisoned = next(record for record in records if record.place == ("jobs.classified", 0, 2))
    happened = [
        oracle.Happened(
            e.fields or {}, e.schema["stage"], e.schema.get("terminal") or (e.schema.get("blocks") and "blocked")
        )
        for e in events
    ]
    ends = {(topic, 0): 4 for topic, *_ in TYPES.values()}
    return Picture(
        records=records,
        dead=[DeadLetter("enrich", poisoned.place, 0, poisoned.key, poisoned.value)],
        event_log=[
            LogRow(e.event_id or "", e.fields["trace_id"], e.place, e.value or b"", e.fields["occurred_at"])  # type: ignore[index]
            for e in events
        ],
        parked=[("jobs.submitted", 0, 3)],
        jobs=oracle.jobs(happened),
        standing=Standing(ends, dict(ends), {stage.agent: 0 for stage in TRIAGE}),
    )


def changed(picture: Picture, place: tuple[str, int, int], **fields: Any) -> Picture:
    """The picture with other fields in the record at `place`."""
    return replace(
        picture,
        records=[replace(r, fields={**(r.fields or {}), **fields}) if r.place == place else r for r in picture.records],
    )


def without_record(picture: Picture, place: tuple[str, int, int]) -> Picture:
    return replace(picture, records=[record for record in picture.records if record.place != place])


def again(picture: Picture, place: tuple[str, int, int], offset: int, **fields: Any) -> Picture:
    """The picture with the record at `place` once more; with other fields it is another event, and in event_log too."""
    found = next(record for record in picture.records if record.place == place)
    copy = replace(found, place=(*place[:2], offset), fields={**(found.fields or {}), **fields})
    row = LogRow(copy.event_id or "", copy.fields["trace_id"], copy.place, copy.value or b"", 0)  # type: ignore[index]
    return replace(
        picture, records=[*picture.records, copy], event_log=[*picture.event_log, *([row] if fields else [])]
    )


def with_job(picture: Picture, **columns: Any) -> Picture:
    return replace(picture, jobs=picture.jobs | {"job-0": replace(picture.jobs["job-0"], **columns)})


def standing(picture: Picture, **parts: Any) -> Picture:
    return replace(picture, standing=replace(picture.standing, **parts))


DAMAGE: dict[str, tuple[Callable[[Picture], Picture], str]] = {
    "a row deleted from event_log": (lambda p: replace(p, event_log=p.event_log[1:]), "event_log 0 times, parked 0 times"),
    "a row doubled in event_log": (lambda p: replace(p, event_log=[*p.event_log, p.event_log[0]]), "holds event-0-0 2 times"),
    "a row whose record is gone": (lambda p: without_record(p, ("jobs.done", 0, 0)), "where no committed record lies"),
    "a row with other bytes": (
        lambda p: replace(p, event_log=[replace(p.event_log[0], value=b"?"), *p.event_log[1:]]), "other bytes than the record"
    ),
    "a row with another id": (
        lambda p: replace(p, event_log=[replace(p.event_log[0], event_id="x"), *p.event_log[1:]]), "it is event-0-0"
    ),
    "garbage that is nowhere": (lambda p: replace(p, parked=[]), "event None is in event_log 0 times, parked 0 times"),
    "an event parked and logged": (
        lambda p: replace(p, parked=[*p.parked, ("jobs.done", 0, 0)]), "event_log 1 times, parked 1 times"
    ),
    "something parked that is nowhere": (
        lambda p: replace(p, parked=[*p.parked, ("jobs.done", 0, 9)]), "where no committed record lies"
    ),
    "a dead letter of nothing": (
        lambda p: replace(p, dead=[replace(p.dead[0], origin=("jobs.acted", 0, 77))]), "names no record"
    ),
    "a dead letter with other bytes": (
        lambda p: replace(p, dead=[replace(p.dead[0], value=b"?")]), "other bytes than its record"
    ),
    "a dead letter nobody told": (lambda p: without_record(p, ("jobs.dead_lettered", 0, 2)), "told to its job 0 times"),
    "a block without its dead letter": (lambda p: replace(p, dead=[]), "no dead letter for what enrich told"),
    "a dead letter beside an output": (
        lambda p: again(p, ("jobs.enriched", 0, 0), 3, event_id="n", trace_id="job-2", causation_id="event-2-1"),
        "stands beside an output",
    ),
    "an output committed twice": (lambda p: again(p, ("jobs.acted", 0, 1), 3), "event-1-3 was committed 2 times"),
    "a second output under another id": (
        lambda p: again(p, ("jobs.acted", 0, 1), 3, event_id="n"), "act committed 2 outputs for event-1-2"
    ),
    "an output missing": (lambda p: without_record(p, ("jobs.acted", 0, 0)), "act committed 0 outputs for event-0-2"),
    "an output of another job": (lambda p: changed(p, ("jobs.acted", 0, 0), trace_id="job-1"), "its cause says"),
    "a hop left out": (lambda p: changed(p, ("jobs.acted", 0, 0), hop=7), "its cause says"),
    "a job that is not done": (lambda p: with_job(p, status="running"), "job job-0: (table, fold) differ in {'status'"),
    "a job that counts an event twice": (lambda p: with_job(p, events=6), "differ in {'events': (6, 5)}"),
    "a job with another time": (
        lambda p: with_job(p, updated_at=p.jobs["job-0"].updated_at + timedelta(microseconds=1)), "differ in {'updated_at'"
    ),
    "a job missing": (lambda p: replace(p, jobs={}), "is only on the log"),
    "a job of nothing": (lambda p: replace(p, jobs=p.jobs | {"ghost": p.jobs["job-0"]}), "is only in the table"),
    "a projector behind": (
        lambda p: standing(p, positions=p.standing.positions | {("jobs.done", 0): 3}), "the projector is at 3 of 4"
    ),
    "an agent behind": (lambda p: standing(p, lags={"act": 2}), "act lags by 2"),
}  # fmt: skip


def test_of_a_picture_in_which_all_is_well_it_says_nothing() -> None:
    assert complaints(healthy(), nothing_set_aside=False) == []


@pytest.mark.parametrize("damage", DAMAGE)
def test_each_damage_is_named(damage: str) -> None:
    do, words = DAMAGE[damage]
    found = complaints(do(healthy()), nothing_set_aside=False)
    assert [complaint for complaint in found if words in complaint], found


def test_what_was_set_aside_is_named_where_only_good_events_were_sent() -> None:
    assert complaints(healthy()) == [
        "parked: ('jobs.submitted', 0, 3)", "dead-lettered by enrich: ('jobs.classified', 0, 2)",
    ]  # fmt: skip


def test_the_watch_sees_a_position_and_an_ended_job_that_go_back(farandole_settings: Settings) -> None:
    """On the real tables, however shortly it lasts: here for one statement."""
    migrate.migrate(farandole_settings)
    projections.install(farandole_settings, projections.discover(find_project()))
    log = KafkaLog(farandole_settings.brokers, farandole_settings.namespace)
    with connect(farandole_settings.database, farandole_settings.schema_name) as database:
        watch = Watch(log, database, ())
        database.execute("INSERT INTO projector_offset (topic, partition, next_offset) VALUES ('jobs.done', 0, 5)")
        database.execute(
            "INSERT INTO job VALUES (gen_random_uuid(), NULL, 0, 4, 5, 5, 0, -1, now(), now(), 'done', 'done', 1, now(),"
            " gen_random_uuid())"
        )
        database.execute("UPDATE projector_offset SET next_offset = 7")
        database.execute("UPDATE job SET updated_at = now(), run = 1, outcome = NULL")
        assert watch.complaints(database) == [], "onwards, and another run"
        database.execute("UPDATE projector_offset SET next_offset = 6")
        database.execute("UPDATE projector_offset SET next_offset = 9")
        database.execute("UPDATE job SET outcome = 'done'")
        database.execute("UPDATE job SET outcome = NULL, stage = 'acted'")
        for offset in (3, 5, 4):
            watch.note("act", "jobs.enriched", 0, offset)
        agent, position, job = watch.complaints(database)
        assert agent == "act in jobs.enriched [0]: 4 after 5"
        assert position == "jobs.done [0]: 6 after 7"
        assert job.endswith("acted after done in run 1")
