"""`python -m tests.chaos --seeds 20 --from 1`: run after run, and whether what must hold has held."""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from farandole.stack.stack import Stack
from tests.chaos.bites import BITES
from tests.chaos.run import Result, run
from tests.chaos.schedule import FAULTS, Schedule, draw

#: Complaints that are shown of one run; the rest is counted.
SHOWN = 12


def main() -> int:
    """0 when every run has held, else 1."""
    given = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends this ends what it started
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.chmod(0o711)
    logging.basicConfig(filename=folder / "client.log")  # what clients of this process say of brokers that are away
    stack = Stack(folder / "stack")
    results = []
    with stack.running():
        for name, schedule in _schedules(given).items():
            place = folder / name
            place.mkdir()
            results.append(run(stack, schedule, place))
            print(report(results[-1]), flush=True)
            if results[-1].held and not given.keep:
                shutil.rmtree(place)
    stack.down(wipe=True)
    if all(result.held for result in results) and not given.keep:
        shutil.rmtree(folder, ignore_errors=True)
    print(summary(results))
    return 0 if all(result.held for result in results) else 1


def _schedules(given: argparse.Namespace) -> dict[str, Schedule]:
    """What is to be run, by name."""
    seeds = range(given.first, given.first + given.seeds)
    found = {f"seed-{seed}": draw(seed, given.without, given.seconds) for seed in seeds}
    controls = BITES if given.controls else {}
    return found | {f"control-{name}": replace(schedule, broken=None) for name, (schedule, _) in controls.items()}


def report(result: Result) -> str:
    """One line of a run that held; of one that did not, all it takes to look into it."""
    done = (
        f"{result.events:,} events, {result.copies} sent twice, {result.poison} poison, {result.faults} faults, "
        f"{result.kills} kills, at rest after {result.rested:.1f} s"
    )
    if result.held:
        return f"{result.folder.name} held: {done}"
    found = [f"  {complaint}" for complaint in result.complaints[:SHOWN]]
    if len(result.complaints) > SHOWN:
        found.append(f"  … and {len(result.complaints) - SHOWN} more")
    again = f"again: python -m tests.chaos --from {result.schedule.seed} --seconds {result.schedule.load.seconds:g}"
    head = f"{result.folder.name} BROKEN: {done}"
    return "\n".join([head, result.schedule.told(), "found:", *found, f"logs: {result.folder}", again])


def summary(results: list[Result]) -> str:
    """The last line."""
    held = sum(result.held for result in results)
    return (
        f"chaos: {len(results)} seeds, {held} held, {len(results) - held} broken; "
        f"{sum(result.events for result in results):,} events, {sum(result.kills for result in results)} kills, "
        f"{sum(result.faults for result in results)} faults, {sum(result.copies for result in results)} records sent twice, "
        f"{sum(result.poison for result in results)} poison"
    )


def _arguments() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    words.add_argument("--seeds", type=int, default=1, help="how many runs")
    words.add_argument("--from", dest="first", type=int, default=1, help="the first one's seed; the next ones follow")
    words.add_argument("--seconds", type=float, default=20, help="how long load and faults go on in each")
    words.add_argument("--without", nargs="*", default=[], choices=[*FAULTS, "odd", "clock"], help="what to leave out")
    words.add_argument(
        "--controls",
        action="store_true",
        help="then the schedules of the broken builds, on the build that is not broken",
    )
    words.add_argument("--keep", action="store_true", help="keep the logs of runs that held, too")
    return words.parse_args()


if __name__ == "__main__":
    sys.exit(main())
