"""Effects once, whoever dies at whatever step; money within its limits. Longer: `python -m tests.chaos.effects --jobs 2000`."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from farandole.stack.stack import Stack
from tests.chaos.effects import checker
from tests.chaos.effects.__main__ import report
from tests.chaos.effects.bites import BITES, CHOSEN
from tests.chaos.effects.deadly import VARIANTS
from tests.chaos.effects.plan import Plan
from tests.chaos.effects.run import run


def test_effects_happen_once_and_money_stays_within_its_limits_under_fire(
    farandole_private_stack: Stack, tmp_path: Path
) -> None:
    """Cases M1 to M4, all at once: workers die around every step, every fifth call fails in another way."""
    result = run(farandole_private_stack, Plan(jobs=100, deaths=1, kills=3, freezes=1), tmp_path)
    print(report(1, result, tmp_path))
    assert result.held
    assert sum(result.deaths.values()) >= 5
    assert result.figures["posted"] > 50


def test_every_variant_has_its_run() -> None:
    assert BITES.keys() == VARIANTS.keys()


@pytest.mark.parametrize("variant", CHOSEN)
def test_a_build_that_is_broken_on_purpose_is_found_out(
    variant: str, farandole_private_stack: Stack, tmp_path: Path
) -> None:
    plan, pattern = BITES[variant]
    result = run(farandole_private_stack, plan, tmp_path)
    assert [one for one in result.complaints if re.search(pattern, one)], report(1, result, tmp_path)


def test_the_runs_of_the_variants_hold_with_the_build_that_is_not_broken(
    farandole_private_stack: Stack, tmp_path: Path
) -> None:
    """The one in which nobody dies: what is found there is found for its reason."""
    plan = replace(BITES["no-reservation"][0], variant="none")
    result = run(farandole_private_stack, plan, tmp_path)
    assert result.held, report(1, result, tmp_path)
    assert result.figures["over budget"] > 0


def test_the_checker_shares_no_code_with_the_runtime() -> None:
    tree = ast.parse(Path(checker.__file__).read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [name for name in names if name.startswith(("farandole", "tests"))]
