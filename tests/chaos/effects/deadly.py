"""`python -m tests.chaos.effects.deadly VARIANT run …` is `farandole run …` that kills itself around every step of an effect.

A VARIANT other than `none` is broken on purpose besides; a patch whose target is gone ends the process.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Where each death takes a place; a point at which all places are taken kills no more.
FOLDER, EACH = "CHAOS_DEATHS", "CHAOS_DEATHS_EACH"

#: Names of points; "": all of them kill.
POINTS = "CHAOS_POINTS"

#: The chance of a death each time a point is passed, where no points are chosen; a chosen one kills for certain.
_CHANCE = 1 / 12


def maybe_die(point: str) -> None:
    """kill -9, as often as a point may in this run."""
    folder, points = os.environ.get(FOLDER), os.environ.get(POINTS, "").split()
    if folder is None or (point not in points if points else random.random() > _CHANCE):
        return
    for number in range(int(os.environ.get(EACH, "2"))):
        try:
            (Path(folder) / f"{point}.{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)


def target(owner: Any, name: str) -> Any:
    """What is to be patched."""
    found = getattr(owner, name, None)
    if found is None:
        raise SystemExit(f"tests.chaos.effects.deadly: {owner} has no {name} any more; write the patch anew")
    return found


def _around(owner: Any, name: str, point: str) -> None:
    whole = target(owner, name)

    def call(*arguments: Any) -> Any:
        maybe_die(f"{point}-before")
        result = whole(*arguments)
        maybe_die(f"{point}-after")
        return result

    setattr(owner, name, call)


def _around_async(owner: Any, name: str, point: str) -> None:
    whole = target(owner, name)

    async def call(*arguments: Any) -> Any:
        maybe_die(f"{point}-before")
        result = await whole(*arguments)
        maybe_die(f"{point}-after")
        return result

    setattr(owner, name, call)


def _patch_points() -> None:
    from farandole.models.claude import Claude
    from farandole.steps.store import Store
    from farandole.worker.settle import Settlement

    _around(Store, "begin", "begin")
    _around(Store, "finish", "finish")
    _around_async(Claude, "send", "call")
    _around(Settlement, "_transaction", "commit")


def _sql(name: str, old: str, new: str) -> None:
    from farandole.steps import store

    statements = target(store, "_SQL")
    if old not in statements[name]:
        raise SystemExit(f"tests.chaos.effects.deadly: {name}.sql has changed; write the variant anew")
    statements[name] = statements[name].replace(old, new)


def no_owner() -> None:
    """Whoever ends a step ends it, whether or not it is still its."""
    _sql("finish", "AND step.owner = given.owner", "")


def no_lease() -> None:
    """A step is taken over whether or not its owner lives."""
    _sql("begin", "AND found.lease_until < clock_timestamp()", "")


def no_reservation() -> None:
    """A budget counts what was spent, not what is under way."""
    from dataclasses import replace

    from farandole.steps.model_calls import ModelCalls

    whole = target(ModelCalls, "_money")
    ModelCalls._money = lambda self, request: replace(whole(self, request), ceiling=0)  # type: ignore[method-assign]


def record_first() -> None:
    """A step is recorded as done before it is."""
    import json

    from farandole.steps.claims import Finish
    from farandole.steps.effects import Effects

    whole = target(Effects, "run")

    async def run(self: Any, begun: Any, call: Any) -> Any:
        result = json.dumps(f"<{begun.key}@chaos>")
        await self.finish(Finish(begun.claim.step, begun.claim.owner, "done", result))
        return await whole(self, begun, call)

    Effects.run = run  # type: ignore[method-assign]


def no_hold() -> None:
    """A call of which nobody knows is repeated, whatever was declared."""
    _sql("begin", "(orphaned AND NOT found.hold)", "orphaned")


VARIANTS: dict[str, Callable[[], None]] = {
    "no-owner": no_owner,
    "no-lease": no_lease,
    "no-reservation": no_reservation,
    "record-first": record_first,
    "no-hold": no_hold,
}


def main() -> None:
    VARIANTS.get(sys.argv.pop(1), lambda: None)()
    _patch_points()
    from farandole.__main__ import main as farandole

    farandole()


if __name__ == "__main__":
    main()
