"""Builds that are broken on purpose are found out: each fails a run that is made to bring it out, and fails for its reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from farandole.stack.stack import Stack
from tests.chaos.bites import BITES, CHOSEN
from tests.chaos.broken import VARIANTS
from tests.chaos.run import run


def test_every_variant_has_its_schedule() -> None:
    assert BITES.keys() == VARIANTS.keys()


@pytest.mark.parametrize("variant", CHOSEN)
def test_a_build_that_is_broken_on_purpose_is_found_out(
    variant: str, farandole_private_stack: Stack, tmp_path: Path
) -> None:
    schedule, pattern = BITES[variant]
    result = run(farandole_private_stack, schedule, tmp_path)
    found = [complaint for complaint in result.complaints if re.search(pattern, complaint)]
    assert found, f"{variant} went unnoticed; complaints: {result.complaints[:10]}"
