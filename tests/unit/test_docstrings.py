"""The examples in docstrings are run, so that they stay true."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest

import farandole
from farandole import Client, Event, Submission, personal
from farandole.settings import Settings
from farandole.testing import check_projection, running_flow

#: Left out: these run when they are imported, or only under alembic.
NOT_IMPORTED = (
    "farandole.__main__",
    "farandole.stack.__main__",
    "farandole.migrations.env",
    "farandole.migrations.versions",
)

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(farandole.__path__, "farandole.")
    if not module.name.startswith(NOT_IMPORTED)
)


class Submitted(Event, topic="jobs.submitted", stage="submitted", ingest=True):
    """What the examples submit."""

    text: str


#: What a reader of an example has imported already.
GIVEN: dict[str, Any] = {
    "UTC": UTC,
    "UUID": UUID,
    "check_projection": check_projection,
    "datetime": datetime,
    "Client": Client,
    "Event": Event,
    "Settings": Settings,
    "Submission": Submission,
    "Submitted": Submitted,
    "personal": personal,
    "running_flow": running_flow,
}


def examples(module: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder().find(import_module(module), module, extraglobs=GIVEN)
    return [test for test in found if test.examples]


@pytest.mark.parametrize("module", [name for name in MODULES if examples(name)])
def test_the_examples_of_a_module_hold(module: str) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in examples(module):
        runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_the_search_for_examples_finds_some() -> None:
    assert sum(len(test.examples) for name in MODULES for test in examples(name)) > 20


@pytest.mark.parametrize("name", farandole.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    thing = getattr(farandole, name)
    assert isinstance(thing, str) or inspect.getdoc(thing)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_opens_with_a_sentence(module: str) -> None:
    first = (import_module(module).__doc__ or "").strip().split("\n\n")[0]
    assert first.endswith((".", "?")), module


def _public_methods() -> list[Callable[..., Any]]:
    things = [getattr(farandole, name) for name in farandole.__all__ if not isinstance(getattr(farandole, name), str)]
    return [
        method
        for thing in things
        if inspect.isclass(thing)
        for name, method in vars(thing).items()
        if inspect.isfunction(method) and name[0] != "_"
    ]


@pytest.mark.parametrize("method", _public_methods(), ids=lambda method: method.__qualname__)
def test_every_public_method_says_what_it_does(method: Callable[..., Any]) -> None:
    assert inspect.getdoc(method)
