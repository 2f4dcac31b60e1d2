"""A minute of faults of every kind, drawn from a seed: what must hold, holds. Longer: `make chaos SEEDS=20 FROM=1`."""

from __future__ import annotations

import ast
import os
from pathlib import Path

from farandole.stack.stack import Stack
from tests.chaos import checker, handlings
from tests.chaos.__main__ import report
from tests.chaos.run import run
from tests.chaos.schedule import FAULTS, draw
from tests.chaos.sending import intended


def test_nothing_is_lost_doubled_or_out_of_order_under_mixed_faults(
    farandole_private_stack: Stack, tmp_path: Path
) -> None:
    seed = int(os.environ.get("TEST_SEED") or 1)
    result = run(farandole_private_stack, draw(seed), tmp_path)
    print(report(result))
    assert result.held
    assert result.kills > 0
    assert result.events > len(intended(result.schedule.load))


def test_a_seed_draws_the_same_schedule_and_the_same_load_each_time() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)
    assert intended(draw(7).load) == intended(draw(7).load)


def test_what_is_left_out_changes_nothing_else() -> None:
    whole, without = draw(3), draw(3, without=["kill"])
    assert without.settings == whole.settings
    assert set(without.actions) < set(whole.actions)


def test_every_kind_of_fault_is_drawn_within_a_few_seeds() -> None:
    drawn = {action.what for seed in range(1, 21) for action in draw(seed).actions}
    made = {"kill", "freeze", "thaw", "join", "drain", "terminate", "duplicate", "partitions", "poison"}
    assert drawn == made | {"kill-service", "stop-service"}
    assert {name for seed in range(1, 21) for name in FAULTS if draw(seed) != draw(seed, without=[name])} == set(FAULTS)


def test_the_checker_and_all_it_stands_on_share_no_code_with_the_runtime() -> None:
    """Followed through what they import of the tests."""
    seen: set[Path] = set()
    waiting = [Path(str(checker.__file__)), Path(str(handlings.__file__))]
    root = Path(__file__).parents[2]
    while waiting:
        file = waiting.pop()
        seen.add(file)
        for name in _imports(file):
            assert name.split(".")[0] != "farandole", f"{file} imports {name}"
            path = root / f"{name.replace('.', '/')}.py"
            if name.startswith("tests.") and path.exists() and path not in seen:
                waiting.append(path)
    assert len(seen) >= 6


def _imports(file: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found
