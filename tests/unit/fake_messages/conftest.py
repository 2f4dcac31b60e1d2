"""A fake of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from farandole.testing import FakeMessages


@pytest.fixture
def fake() -> Iterator[FakeMessages]:
    with FakeMessages() as fake:
        yield fake
