"""Fixtures: checkouts to start stacks in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from farandole.stack.stack import Stack
from tests.integration.stack.checkouts import Checkout, NewCheckout, fill


@pytest.fixture(scope="session")
def formatted() -> Iterator[Path]:
    """The data folder of a stack that was up once: copies of it start without formatting, two seconds sooner."""
    folder = Path(tempfile.mkdtemp(prefix="farandole-stack-tests-"))
    folder.chmod(0o711)
    stack = Stack(folder / "template", brief=True)
    with stack.running():
        pass
    yield stack.data
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def new_checkout(monkeypatch: pytest.MonkeyPatch) -> Iterator[NewCheckout]:
    """Makes checkouts whose stacks were never up; what still runs of them at the end is stopped."""
    for variable in ("KAFKA_BOOTSTRAP_SERVERS", "DATABASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    made: list[Checkout] = []

    def make() -> Checkout:
        root = Path(tempfile.mkdtemp(prefix="farandole-checkout-"))
        root.chmod(0o755)
        (root / "pyproject.toml").write_text("[tool.farandole]\n")
        made.append(Checkout(root))
        return made[-1]

    yield make
    for checkout in made:
        checkout.stack.down(wipe=True)
        shutil.rmtree(checkout.root)


@pytest.fixture
def checkout(new_checkout: NewCheckout, formatted: Path) -> Checkout:
    """A checkout whose stack was up once and is down; it has no ports yet."""
    made = new_checkout()
    fill(made, formatted)
    return made


@pytest.fixture
def second_checkout(new_checkout: NewCheckout, formatted: Path) -> Checkout:
    """Another one beside it."""
    made = new_checkout()
    fill(made, formatted)
    return made
