"""Builds that are broken on purpose: `python -m tests.chaos.broken VARIANT run …` is `farandole run …` with one thing wrong.

A patch whose target is not there any more ends the process, so that no variant becomes a healthy build unnoticed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
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

    def transaction(self: Any, plan: Any, outputs: list[Any]) -> None:
        whole(self, plan, [])
        if outputs:
            time.sleep(_WINDOW)
            producer = self._ready()
            producer.begin_transaction()
            for output in outputs:
                produce(producer, output)
            producer.commit_transaction()

    settle.Settlement._transaction = transaction  # type: ignore[method-assign]


def no_fencing() -> None:
    """What was done under an assignment that is lost is committed all the same, under the group's present metadata."""
    from farandole.worker import batch, membership

    _target(membership.Membership, "plan")

    def plan(self: Any, given: Any) -> Any:
        with self._lock:
            items, ends = given.finished()
            return batch.Plan(items, ends, self._metadata) if ends else None

    membership.Membership.plan = plan  # type: ignore[method-assign]


def count_without_dedup() -> None:
    """The projector folds what it has seen before."""
    from farandole.projector import store

    whole = _target(store, "_SQL")["insert_new"]
    if "RETURNING *\n)" not in whole or "FROM inserted" not in whole:
        raise SystemExit("tests.chaos.broken: insert_new.sql has changed; the variant must be written anew")
    store._SQL["insert_new"] = whole.replace("FROM inserted", "FROM incoming")


def claims_by_event_id() -> None:
    """An event that was claimed once is a duplicate, also where its own record is delivered again."""
    from farandole.worker import ledger

    ledger._CLAIMED = _target(ledger, "_CLAIMED") + " AND false"


VARIANTS: dict[str, Callable[[], None]] = {
    "commit-before-produce": commit_before_produce,
    "no-fencing": no_fencing,
    "count-without-dedup": count_without_dedup,
    "claims-by-event-id": claims_by_event_id,
}


def main() -> None:
    VARIANTS[sys.argv.pop(1)]()
    from farandole.__main__ import main as farandole

    farandole()


if __name__ == "__main__":
    main()
