"""`python -m tests.chaos.effects --jobs 2000 --from 1`: effects and money under fire, and whether what must hold has held."""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from farandole.stack.stack import Stack
from tests.chaos.effects.plan import Plan, Result
from tests.chaos.effects.run import run


def main() -> int:
    """0 when every run has held, else 1."""
    given = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="chaos-effects-"))
    folder.chmod(0o711)
    logging.basicConfig(filename=folder / "client.log")
    stack, held = Stack(folder / "stack"), True
    with stack.running():
        for seed in range(given.first, given.first + given.seeds):
            place = folder / f"seed-{seed}"
            place.mkdir()
            share = max(1, given.jobs // 150)
            limits = {key: limit * (1 if key == "job" else share) for key, limit in Plan().limits.items()}
            plan = Plan(
                jobs=given.jobs,
                seed=seed,
                deaths=2 * share if share < 4 else 6,
                kills=4 * share if share < 4 else 16,
                limits=limits,
                seconds=60 + given.jobs,
                variant=given.variant,
            )
            result = run(stack, plan, place)
            held &= result.held
            print(report(seed, result, place), flush=True)
    stack.down(wipe=True)
    if held:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if held else 1


def report(seed: int, result: Result, folder: Path) -> str:
    """What was found, and what it was found in."""
    lines = [f"effects seed {seed} {'held' if result.held else 'BROKEN'}"]
    lines += [f"  {name}: {figure}" for name, figure in result.figures.items()]
    lines += [f"  found: {complaint}" for complaint in result.complaints[:20]]
    return "\n".join([*lines, *([] if result.held else [f"  logs: {folder}"])])


def _arguments() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m tests.chaos.effects", description=__doc__)
    words.add_argument("--jobs", type=int, default=2000)
    words.add_argument("--seeds", type=int, default=1, help="how many runs")
    words.add_argument("--from", dest="first", type=int, default=1, help="the first one's seed; the next ones follow")
    words.add_argument("--variant", default="none", help="of tests.chaos.effects.deadly")
    return words.parse_args()


if __name__ == "__main__":
    sys.exit(main())
