"""The checker bites: of evidence in which all is well it says nothing, of each damage done to it, what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests import oracle
from tests.acceptance.checker import DEAD_LETTERED, FAILED, happened
from tests.acceptance.picture import DeadLetter, LogRow, Picture, Seen, Standing
from tests.chaos.checker import ROUTES, Evidence, complaints, expected
from tests.chaos.handlings import Handling

STAGES = {"jobs.Sent": "sent", "jobs.Sorted": "sorted", "jobs.Worked": "worked", "jobs.Finished": "finished"}
#: Events of one key; what befalls the second is decided by its handler.
WORK = ("", "slow.fail", "plain.retry", "")


def seen(name: str, topic: str, by: str, seq: int, hop: int, offset: int, **payload: Any) -> Seen:
    fields = {
        "event_id": f"{name}-{seq}", "trace_id": "job", "causation_id": payload.pop("cause", None), "run": 0, "hop": hop,
        "occurred_at": 1_000_000 * hop + seq, "emitted_by": by, "attempt": 1, "seq": seq, "work": WORK[seq], **payload,
    }  # fmt: skip
    schema: dict[str, Any] = {"namespace": "jobs", "name": name.removeprefix("jobs."), "stage": STAGES.get(name)}
    schema |= {"terminal": {"jobs.Finished": "done", FAILED: "failed"}.get(name), "blocks": name == DEAD_LETTERED}
    return Seen((topic, 0, offset), b"job", f"{name} {seq}".encode(), fields, schema)


def records() -> list[Seen]:
    """Four events of one job through three agents: the second fails at the second agent; and poison on the first topic."""
    made = [Seen(("jobs.sent", 0, 9), None, b"poison", None, {})]
    told = {"agent": "quick", "origin_topic": "jobs.sent", "origin_partition": 0, "origin_offset": 9}
    made.append(seen(DEAD_LETTERED, "jobs.dead_lettered", "quick", 0, 1, 0, cause="stranger", **told))
    for seq, work in enumerate(WORK):
        made.append(seen("jobs.Sent", "jobs.sent", "chaos", seq, 0, seq))
        if seq % 5 == 0:
            made.append(emitted("quick", "jobs.Noted", "jobs.noted", seq, 1, seq, "jobs.Sent"))
        made.append(emitted("quick", "jobs.Sorted", "jobs.sorted", seq, 1, seq, "jobs.Sent"))
        if work == "slow.fail":
            made.append(seen(FAILED, "jobs.failed", "slow", seq, 2, seq, cause=f"jobs.Sorted-{seq}"))
            continue
        made.append(emitted("slow", "jobs.Worked", "jobs.worked", seq, 2, seq, "jobs.Sorted"))
        made.append(emitted("plain", "jobs.Finished", "jobs.finished", seq, 3, seq, "jobs.Worked"))
    return made


def emitted(agent: str, name: str, topic: str, seq: int, hop: int, offset: int, cause: str) -> Seen:
    return seen(name, topic, agent, seq, hop, offset, cause=f"{cause}-{seq}", handling=f"{agent}-{seq}")


def evidence(made: list[Seen] | None = None) -> Evidence:
    """What a run leaves behind; the tables as a fold makes them of `made`."""
    made = made if made is not None else records()
    events = [record for record in made if record.fields]
    ends: dict[tuple[str, int], int] = {(record.place[0], 0): 10 for record in made}
    rows = {
        e.event_id: LogRow(str(e.event_id), "job", e.place, e.value or b"", (e.fields or {})["occurred_at"])
        for e in reversed(events)
    }
    picture = Picture(
        records=made,
        dead=[DeadLetter("quick", ("jobs.sent", 0, 9), 0, None, b"poison")],
        event_log=list(rows.values()),
        parked=[("jobs.sent", 0, 9)],
        jobs={},
        standing=Standing(ends, dict(ends), dict.fromkeys(ROUTES, 0)),
    )
    picture = replace(picture, jobs=oracle.jobs(happened(picture)))
    return Evidence(
        picture=picture,
        agents=tuple(ROUTES),
        acknowledged={("jobs.sent", 0, seq): f"jobs.Sent-{seq}" for seq in range(len(WORK))},
        poison=frozenset({("jobs.sent", 0, 9)}),
        handlings={
            f"{agent}-{seq}": Handling(f"{agent}-{seq}", agent, "", 1, 10 * seq, 10 * seq + 5, "emitted")
            for agent in ROUTES
            for seq in range(len(WORK))
        },
        waits=[],
        stage_times=oracle.stage_times(happened(picture)),
        holds=False,
        claims_may_be_lost=False,
    )


def without(name: str, seq: int) -> Evidence:
    return evidence([record for record in records() if record.event_id != f"{name}-{seq}"])


def again(name: str, seq: int, **more: Any) -> Evidence:
    """A record lies twice on its topic."""
    found = next(record for record in records() if record.event_id == f"{name}-{seq}")
    return replace(evidence([*records(), replace(found, place=(found.place[0], 0, 8))]), **more)


def handled(name: str, **times: int) -> Evidence:
    """A handling began or ended at another time."""
    whole = evidence()
    return replace(whole, handlings={**whole.handlings, name: replace(whole.handlings[name], **times)})  # type: ignore[arg-type]


def swapped() -> Evidence:
    """Two outputs lie in each other's place."""
    places = {"jobs.Worked-2": ("jobs.worked", 0, 3), "jobs.Worked-3": ("jobs.worked", 0, 2)}
    return evidence([replace(r, place=places.get(str(r.event_id), r.place)) for r in records()])


def dead() -> Evidence:
    """A good event was dead-lettered, besides."""
    whole = evidence()
    letter = DeadLetter("slow", ("jobs.sorted", 0, 2), 0, b"job", b"jobs.Sorted 2")
    return replace(whole, picture=replace(whole.picture, dead=[*whole.picture.dead, letter]))


DAMAGES: dict[str, tuple[Callable[[], Evidence], str]] = {
    "an output is missing": (lambda: without("jobs.Worked", 2), "slow committed [] for jobs.Sorted-2"),
    "a second output is missing": (lambda: without("jobs.Noted", 0), "quick committed ['jobs.Sorted'] for jobs.Sent-0"),
    "an input is missing": (lambda: without("jobs.Sent", 3), "acknowledged with event jobs.Sent-3; there lies None"),
    "an output of nothing": (lambda: without("jobs.Sorted", 3), "jobs.Sorted-3, which it was never given"),
    "an output twice": (lambda: again("jobs.Worked", 2), "slow committed jobs.Worked 2 times for jobs.Sorted-2"),
    "of an input twice an output twice": (
        lambda: again("jobs.Finished", 2, claims_may_be_lost=True),
        "plain committed jobs.Finished 2 times for jobs.Worked-2",
    ),
    "a wait for what has ended": (
        lambda: replace(evidence(), waits=[("slow", "jobs.Sorted-2")]),
        "slow has a wait for jobs.Sorted-2, which has ended",
    ),
    "a handling before the one before it had ended": (
        lambda: handled("slow-2", began=4),
        "(handling slow-2) was handled before",
    ),
    "one that was put off, after a later one": (
        lambda: replace(handled("plain-2", began=50, ended=55), holds=True),
        "(handling plain-3) was handled before",
    ),
    "a handling that never ended": (lambda: handled("quick-1", ended=99), "(handling quick-2) was handled before"),
    "a handling nobody knows": (lambda: replace(evidence(), handlings={}), "which the ledger does not know"),
    "outputs in another order": (swapped, "outputs lie in another order than their causes"),
    "a good event among the dead letters": (dead, "slow dead-lettered ('jobs.sorted', 0, 2) 1 times"),
    "poison nobody sent": (lambda: replace(evidence(), poison=frozenset()), "parked without being poison"),
    "poison nobody saw": (
        lambda: replace(evidence(), poison=frozenset({("jobs.sent", 0, 9), ("jobs.worked", 0, 9)})),
        "plain did not dead-letter the poison at ('jobs.worked', 0, 9)",
    ),
    "a projection that counts otherwise": (lambda: replace(evidence(), stage_times={}), "stage_times ('sent'"),
}


def test_of_a_run_in_which_all_is_well_it_says_nothing() -> None:
    assert complaints(evidence()) == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_of_each_damage_it_says_what_is_wrong(damage: str) -> None:
    make, pattern = DAMAGES[damage]
    found = complaints(make())
    assert any(pattern in complaint for complaint in found), found


def test_a_record_that_was_sent_twice_may_be_answered_twice_after_claims_were_lost_and_else_not() -> None:
    names = ("jobs.Sent-2", "jobs.Sorted-2", "jobs.Worked-2")
    twice = [replace(r, place=(r.place[0], 0, 8)) for r in records() if r.event_id in names]
    made = [*records(), *twice]
    found = {complaint.partition(":")[0] for complaint in complaints(evidence(made))}
    assert found == {
        "quick committed jobs.Sorted 2 times for jobs.Sent-2",
        "slow committed jobs.Worked 2 times for jobs.Sorted-2",
    }
    assert complaints(replace(evidence(made), claims_may_be_lost=True)) == []


def test_one_that_was_put_off_may_be_overtaken_where_its_key_is_not_held() -> None:
    assert complaints(handled("plain-2", began=50, ended=55)) == []


def test_what_an_event_tells_one_handler_does_not_concern_the_others() -> None:
    assert expected("slow", {"work": "slow.reject", "seq": 1}) == {DEAD_LETTERED}
    assert expected("plain", {"work": "slow.reject", "seq": 1}) == {"jobs.Finished"}
    assert expected("quick", {"work": "slow.fail", "seq": 5}) == {"jobs.Sorted", "jobs.Noted"}
