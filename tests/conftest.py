"""What pytest-xdist runs where (its own `--dist loadgroup` groups nothing with pytest 9.2), and what a test must leave."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

from tests.java.avro import JavaAvro

# No test asserts a duration: an example that takes long on a busy machine is no fault.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

#: Tests that run whole systems, by the beginnings of their names: those of a line run one after the other. The lines take
#: about as long as one another, and the first that fits counts.
LINES = (
    tuple(f"tests/acceptance/test_{name}" for name in ("init", "demo", "readme", "killer", "mails")),
    ("tests/acceptance/",),
    ("tests/chaos/effects/",),
    ("tests/chaos/",),
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests on one worker, for what the file starts once; those of a line of systems one after the other.

    Systems are of six processes and more each, and many at once are slower than one after the other. They are the longest
    and come first, as their folders do.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            line = next((number for number, names in enumerate(LINES) if nodeid.startswith(names)), None)
            return nodeid.split("::")[0] if line is None else f"systems {line}"

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session")
def java_avro() -> Iterator[JavaAvro]:
    """Apache Avro's Java library, started when first asked for (two seconds); no Java or jar fails the test."""
    with JavaAvro() as java:
        yield java


@pytest.fixture(autouse=True, scope="module")
def modules_of_others() -> Iterator[None]:
    """What a file's own fixtures load, before its first test, goes with the file."""
    with kept():
        yield


@pytest.fixture(autouse=True)
def our_modules() -> Iterator[None]:
    """A test that loads another project leaves this one's modules: a class that is imported again is another class."""
    with kept():
        yield


@contextmanager
def kept() -> Iterator[None]:
    """Take back what is done to the project's modules and to the path they come from."""
    path, before = list(sys.path), _project_modules()
    yield
    sys.path[:] = path
    for name in _project_modules():
        del sys.modules[name]
    sys.modules.update(before)


def _project_modules() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.split(".")[0] in ("schemas", "agents")}
