"""Builds that are broken on purpose: `python -m tests.chaos.broken VARIANT run …` is `farandole run …` with one thing wrong.

A patch whose target is not there any more ends the process, so that no variant becomes a healthy build unnoticed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

#: Seconds. A window that a build has by nature is held open this long, so that a kill falls into it.
_WINDOW = 0.25


def _target(owner: Any, name: str) -> Any:
    found = getattr(owner, name, None)
    if found is None:
        raise SystemExit(f"tests.chaos.broken: {owner} has no {name} any more; the variant must be written anew")
    return found


def commit_before_produce() -> None:
    """Positions are committed first, outputs follow in a transaction of their own."""
    from farandole.worker import settle

    whole, produce = _target(settle.Settlement, "_transaction"), _target(settle, "_produce")

    def transaction(self: Any, plan: Any, outage: Any) -> None:
        outputs = [output for item in plan.items for output in self._outputs.of(item)]
        whole(self, replace(plan, items=[]), outage)
        if outputs:
            time.sleep(_WINDOW)
            producer = self._producer or self.open(outage)
            producer.begin_transaction()
            for output in outputs:
                produce(producer, output)
            producer.commit_transaction()

    settle.Settlement._transaction = transaction  # type: ignore[method-assign]


def no_fencing() -> None:
    """Partitions that are lost are not given up: what was done for them is committed under the group's present metadata."""
    from farandole.kafka import KafkaError
    from farandole.worker import holdings, settle
    from farandole.worker.ledger import SlotLost

    _target(holdings.Holdings, "drop")
    holdings.Holdings.drop = lambda self, keys: None  # type: ignore[method-assign]
    whole = _target(settle.Settlement, "_recover")

    def recover(self: Any, failure: Any, plan: Any, outage: Any) -> Any:
        try:
            return whole(self, failure, plan, outage)
        except SlotLost:  # a member that came back is told so, when it is quick
            return self._start_over(plan, outage)

    settle.Settlement._recover = recover  # type: ignore[method-assign]
    _target(settle, "_GROUP_MOVED").add(KafkaError.FENCED_INSTANCE_ID)


def no_metadata() -> None:
    """What is finished beyond the position is not read back: it is handled again."""
    from farandole.worker import membership

    whole = _target(membership, "read_note")

    def read_note(place: Any) -> Any:
        note = whole(place)
        return replace(note, beyond=()) if note else None

    membership.read_note = read_note


def count_without_dedup() -> None:
    """The projector folds what it has seen before."""
    from farandole.projector import store

    whole = _target(store, "_SQL")["insert_new"]
    if "INSERT INTO fresh SELECT * FROM inserted" not in whole:
        raise SystemExit("tests.chaos.broken: insert_new.sql has changed; the variant must be written anew")
    store._SQL["insert_new"] = whole.replace(
        "SELECT * FROM inserted", 'SELECT event_id, topic, partition, "offset" FROM incoming'
    )


def claims_by_event_id() -> None:
    """An event that was claimed once is a duplicate, also where its own record is delivered again."""
    from farandole.worker import ledger

    whole = _target(ledger, "_RECLAIM")
    if "WHERE step.event_id" not in whole:
        raise SystemExit("tests.chaos.broken: reclaim.sql has changed; the variant must be written anew")
    ledger._RECLAIM = whole.replace("WHERE step.event_id", "WHERE false AND step.event_id")


VARIANTS: dict[str, Callable[[], None]] = {
    "commit-before-produce": commit_before_produce,
    "no-fencing": no_fencing,
    "no-metadata": no_metadata,
    "count-without-dedup": count_without_dedup,
    "claims-by-event-id": claims_by_event_id,
}


def main() -> None:
    VARIANTS[sys.argv.pop(1)]()
    from farandole.__main__ import main as farandole

    farandole()


if __name__ == "__main__":
    main()
